// Package remote builds the part of a testbed that concerns one node on another machine: there runs Serve, over standard input and
// output, and here a Machine asks it.
package remote
