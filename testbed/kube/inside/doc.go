// Package inside is what netdelta is in a pod of a cluster in addition to an agent: what keeps the pod up while it is used, what
// starts programs in it, and what tries whether a way is open before anything is measured on it. It speaks over standard input and
// output, as one verb of the program.
package inside
