// Package datapath attaches the eBPF programs that carry packets, guard pods and translate addresses in a lab. Programs are
// held by descriptors of this process alone: they are gone when it closes them or ends, however it ends. The functions that
// attach are called by a thread inside the network namespace that is meant.
package datapath
