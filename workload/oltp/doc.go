// Package oltp is the workload oltp: sysbench's transactions on a cluster of three databases, MariaDB with Galera, in which
// each write takes part only when all nodes have it. The client speaks to the first node.
package oltp
