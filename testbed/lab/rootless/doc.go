// Package rootless lets users without root build labs: it starts this program again as root of a user namespace, in which it
// may make network namespaces and rule over what is in them, and over nothing else of the machine.
package rootless
