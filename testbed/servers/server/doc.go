// Package server is what runs on a server that is a node of a testbed. A supervisor stays in the server's own network namespace: it makes
// the cards that the node gets, or moves a spare one, and puts back what it found when the node ends, however that ends. The node itself
// is a process in a network namespace of its own, which serves testbed/joined.
package server
