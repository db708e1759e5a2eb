// Package node is what runs as process 1 of a cluster's node: it makes the node's root out of the machine's, so that nothing that
// the node writes reaches the machine, and then starts, stops and restarts what it is told to, over its standard input.
package node
