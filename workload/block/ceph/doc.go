// Package ceph is a small Ceph cluster, as a store of the workload block: a monitor and OSDs in a pod each, three as a
// rule, which keep every block three times, with their data in memory. What all pods have to agree on follows from their addresses, so that each
// starts its daemons by itself.
package ceph
