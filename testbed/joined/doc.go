// Package joined opens testbeds whose nodes are machines of their own, guests say: each builds the part of a testbed that concerns
// its node. On each machine runs Serve, over standard input and output, and here a Machine asks it.
package joined
