// Package galera is a cluster of three MariaDB databases with Galera, on which the workload oltp runs. It is an extra: it needs
// programs that netdelta does not bring along. Each node is a pod; a write takes part only when all nodes have it. What all pods
// have to agree on follows from their addresses, so that each starts its database by itself.
package galera

import (
	_ "embed"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"

	"netdelta/internal/daemon"
	"netdelta/internal/gather"
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

// Size is what the data take on a disk, at most.
func (d Data) Size() unit.Bytes { return unit.Bytes(d.Tables*d.Rows) * rowSize }

// String is how much there is: "4 tables of 25,000 rows".
func (d Data) String() string {
	return fmt.Sprintf("%s of %s rows", unit.Counted(d.Tables, "table"), unit.Thousands(d.Rows))
}

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

// The ports of a node, as they are everywhere: of the database, of the group, and of what a node missed.
const (
	Port       = 3306
	groupPort  = 4567
	missedPort = 4568
)

// The files of a node, in its home.
const (
	configFile   = "my.cnf"
	dataFolder   = "data"
	socketFile   = "db.sock"
	transferFile = "bin/wsrep_sst_" + transferMethod
	positionFile = "position"
)

// The names that the database knows.
const (
	databaseName   = "sbtest" // sysbench's own
	userName       = "netdelta"
	transferMethod = "seeded"
)

// transferFile's text stands in for the transfer of all data to a node that joins. It has them already, and what has happened
// since Galera sends by itself. The node's own position is in a file.
//
//go:embed files/transfer.sh
var transferText string

func transferScript(in places) string { return filled(transferText, "{position}", in(positionFile)) }

// filled is a text with words in the places of names.
func filled(text string, words ...string) string { return strings.NewReplacer(words...).Replace(text) }

// places says where a file of a home is.
type places func(name ...string) string

// literal is an address as it is written before a port.
func literal(a netip.Addr) string {
	if a.Is4() {
		return a.String()
	}
	return "[" + a.String() + "]"
}

// suspicion and inactivity are how long a node may be silent until others doubt it, and until it is out. Networks are swapped
// in tens of milliseconds, after which TCP may take seconds to try again.
const (
	suspicion  = 8
	inactivity = 16
)

// nodeText is the part of the configuration that a node has whether it takes part in a cluster or not. What would make each commit
// wait for a disk is off: the disk is not what is measured, and what is lost with the machine is of no value.
//
//go:embed files/node.cnf
var nodeText string

func base(in places) string {
	return filled(nodeText, "{data}", in(dataFolder), "{socket}", in(socketFile), "{pid}", in("db.pid"), "{temp}", in("tmp"),
		"{port}", strconv.Itoa(Port), "{connections}", strconv.Itoa(MaxConnections+Nodes*4))
}

//go:embed files/clustered.cnf
var clusteredText string

// clustered is the rest of the configuration of the node at a place.
func clustered(at workload.Member) string {
	own := at.Peers[at.Pod]
	group := gather.Each(at.Peers, literal)
	options := []string{
		fmt.Sprintf("gmcast.listen_addr=tcp://%s:%d", literal(own), groupPort),
		fmt.Sprintf("ist.recv_addr=%s:%d", literal(own), missedPort),
		"gcache.size=64M",
		"pc.recovery=FALSE",
		fmt.Sprintf("evs.suspect_timeout=PT%dS", suspicion),
		fmt.Sprintf("evs.inactive_timeout=PT%dS", inactivity),
		"evs.send_window=512",
		"evs.user_send_window=256",
		keptFigures,
	}
	return filled(clusteredText, "{own}", own.String(), "{provider}", provider, "{group}", strings.Join(group, ","), "{address}", literal(own),
		"{number}", strconv.Itoa(at.Pod), "{method}", transferMethod, "{options}", strings.Join(options, ";"))
}

//go:embed files/alone.cnf
var aloneText string

// alone is the rest of the configuration of a node without a cluster, which is reached by its socket only.
func alone() string {
	return filled(aloneText, "{provider}", provider, "{port}", strconv.Itoa(groupPort))
}

// program is a program of the database in a home, with its configuration. It runs as root where netdelta does, which it would refuse
// to do by itself.
func program(home *daemon.Sandbox, path string, args ...string) daemon.Spec {
	all := []string{"--defaults-file=" + home.Path(configFile)}
	if os.Geteuid() == 0 {
		all = append(all, "--user=root")
	}
	return daemon.Spec{Path: path, Args: append(all, args...), Env: []string{searchPath(home.Path)}}
}

// searchPath is where the database finds the scripts that it calls.
func searchPath(in places) string {
	return "PATH=" + in("bin") + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
}
