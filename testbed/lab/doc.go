// Package lab is the testbed on one Linux machine: nodes and pods are network namespaces, joined by veth pairs and a bridge
// in a namespace of its own. It carries a network's plan out through netlink, in process. The namespaces have no names and
// live only as long as this program and what it started: killed, it leaves nothing but processes, which Cleanup ends.
package lab
