// Package block is the workload block: blocks of a store across the network, read and written by fio.
package block
