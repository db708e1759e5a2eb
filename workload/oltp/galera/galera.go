// Package galera is a cluster of three MariaDB databases with Galera, on which the workload oltp runs. It is an extra: it needs
// programs that netdelta does not bring along. Each node is a pod; a write takes part only when all nodes have it. What all pods
// have to agree on follows from their addresses, so that each starts its database by itself.
package galera

import (
	"fmt"

	"netdelta/unit"
	"netdelta/workload"
	"netdelta/workload/tool/sysbench"
)

// Nodes is how many databases the cluster has: the least that keeps its quorum when it loses one.
const Nodes = 3

// Data are the tables of sysbench that the cluster holds.
type Data struct {
	Tables int
	Rows   int // of each table
}

// Usual are the tables that there are when nothing else is said, with enough rows for transactions to meet rarely.
func Usual() Data { return Data{Tables: 4, Rows: 25_000} }

// rowSize is what a row takes at most, with its index: the archive of 10 tables of 100,000 rows is larger than the usual one by 277
// bytes for each further row.
const rowSize = 320

// room is what the data take in addition to the usual ones.
func (d Data) room() unit.Bytes {
	return max(0, unit.Bytes(d.Tables*d.Rows-Usual().Tables*Usual().Rows)) * rowSize
}

// Key names a cluster that holds the data: see workload.Cluster.
func (d Data) Key() string {
	if d == Usual() {
		return "oltp"
	}
	return fmt.Sprintf("oltp of %d tables of %d rows", d.Tables, d.Rows)
}

// MaxConnections is how many connections a client may have.
const MaxConnections = 256

// The programs, and Galera's library, which the database loads.
const (
	databaseProgram = "mariadbd"
	installProgram  = "mariadb-install-db"
	clientProgram   = "mariadb"
	provider        = "/usr/lib/galera/libgalera_smm.so"
)

// Memory of a node: homeSize for the usual data, which lie in memory, and at most resident for its daemon.
const (
	homeSize = 384 * unit.MiB
	resident = 256 * unit.MiB
)

// Memory is what the cluster takes at most, in all pods together.
func (d Data) Memory() unit.Bytes { return Nodes * (homeSize + resident + d.room()) }

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
func (d Data) Run() sysbench.Run {
	return sysbench.Run{User: userName, Database: databaseName, Tables: d.Tables, Rows: d.Rows}
}
