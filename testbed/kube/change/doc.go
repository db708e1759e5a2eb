// Package change carries changes of a cluster out for as long as a run measures what they do, and undoes them. What is to be
// done is recorded on disk before it is begun, so that a killed run's changes can be undone too; a Lease keeps two runs from
// changing one cluster at once.
package change
