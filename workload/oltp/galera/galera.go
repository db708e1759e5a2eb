// Package galera is a cluster of three MariaDB databases with Galera, on which the workload oltp runs. It is an extra: it needs
// programs that netdelta does not bring along. Each node is a pod; a write takes part only when all nodes have it. What all pods
// have to agree on follows from their addresses, so that each starts its database by itself.
package galera

import (
	"netdelta/unit"
	"netdelta/workload"
	"netdelta/workload/tool/sysbench"
)

// Nodes is how many databases the cluster has: the least that keeps its quorum when it loses one.
const Nodes = 3

// The tables of sysbench, with enough rows for transactions to meet rarely.
const (
	Tables = 4
	Rows   = 25_000 // of each table
)

// MaxConnections is how many connections a client may have.
const MaxConnections = 256

// The programs, and Galera's library, which the database loads.
const (
	databaseProgram = "mariadbd"
	installProgram  = "mariadb-install-db"
	clientProgram   = "mariadb"
	provider        = "/usr/lib/galera/libgalera_smm.so"
)

// Memory of a node: homeSize for its data, which lie in memory, and at most resident for its daemon.
const (
	homeSize = 384 * unit.MiB
	resident = 256 * unit.MiB
)

// Memory is what the cluster takes at most, in all pods together.
const Memory = Nodes * (homeSize + resident)

// Programs are those that the cluster needs.
func Programs() []workload.Program {
	return []workload.Program{
		{Name: databaseProgram, Package: "mariadb-server-core"},
		{Name: installProgram, Package: "mariadb-server-core"},
		{Name: clientProgram, Package: "mariadb-client-core"},
		{Name: provider, Package: "galera-4"},
		{Name: sysbench.Program, Package: sysbench.Program},
	}
}

// Run is what all runs of sysbench on the cluster have in common.
func Run() sysbench.Run {
	return sysbench.Run{User: userName, Database: databaseName, Tables: Tables, Rows: Rows}
}
