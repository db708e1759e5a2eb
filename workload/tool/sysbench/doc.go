// Package sysbench knows the command line of sysbench 1.0 and reads what its database tests print. It is pure: it starts
// nothing.
package sysbench
