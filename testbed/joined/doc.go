// Package joined opens testbeds whose nodes are separate machines, such as guests. Each machine builds the part of a testbed that
// concerns its node: it runs Serve over standard input and output, and the controller asks it through a Machine.
package joined
