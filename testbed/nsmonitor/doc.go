// Package nsmonitor reads what the kernel counts in a network namespace, and samples the packets there: with a netlink socket,
// the files of the IP stack, and a packet socket. It is what testbeds are observed with, wherever the namespace is.
package nsmonitor
