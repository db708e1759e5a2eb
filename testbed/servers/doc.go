// Package servers opens testbeds whose nodes are machines with networks of their own, however these are reached: a carrier starts a
// supervisor (testbed/servers/server) on each, and speaks to it by its standard input and output.
package servers
