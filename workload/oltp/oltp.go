package oltp

import (
	"fmt"
	"time"

	"netdelta/network"
	"netdelta/result"
	"netdelta/unit"
	"netdelta/workload"
)

// nodes is how many databases the cluster has: the least that keeps its quorum when it loses one.
const nodes = 3

// The tables, of which there are enough rows for transactions to meet rarely.
const (
	tables = 4
	rows   = 25_000 // of each table
)

// burst is the shortest that says something: sysbench counts in whole seconds.
const burst = 2 * time.Second

// connectionsMost is how many connections a client has at most.
const connectionsMost = 256

// Workload is oltp.
func Workload() workload.Workload {
	return workload.Workload{
		Name:     "oltp",
		Protocol: network.TCP,
		Summary:  "transactions on a MariaDB Galera cluster of three nodes, by sysbench",
		UsedBy:   "web shops and everything else that keeps its data in a replicated SQL database",
		Headline: "rate",
		Metrics: []workload.Metric{
			{Name: "rate", Unit: "1/s", Better: "higher"},
			{Name: "p50", Unit: "ns", Better: "lower"},
			{Name: "p90", Unit: "ns", Better: "lower"},
			{Name: "p99", Unit: "ns", Better: "lower"},
			{Name: "p99.9", Unit: "ns", Better: "lower"},
			{Name: "mean", Unit: "ns", Better: "lower"},
			{Name: "min", Unit: "ns", Better: "lower"},
		},
		Defaults:    result.Params{Connections: 8, CPU: "any", Own: result.Own{}.Or(parameters())},
		Parameters:  parameters(),
		Check:       check,
		SourcePorts: func(result.Params) int { return 0 }, // they are the kernel's to choose
		Demand:      demand,
		Target:      targeted(),
	}
}

// parameters are those that the workload declares: what transactions consist of, in sysbench's words.
func parameters() []result.Parameter {
	return result.Declare(result.Parameter{
		Key: "mix", Kind: result.KindWord, Words: "read_write|point_select|update_index|write_only", Default: "read_write",
		Says: "What transactions of a database consist of.",
	})
}

// demand is the same for all parameters: they share one cluster.
func demand(p result.Params) workload.Demand {
	if p.Target != "" {
		return workload.Demand{Burst: burst, Opaque: true} // its programs are looked for in its pods
	}
	return workload.Demand{
		Programs: []workload.Program{
			{Name: databaseProgram, Package: "mariadb-server-core"},
			{Name: installProgram, Package: "mariadb-server-core"},
			{Name: clientProgram, Package: "mariadb-client-core"},
			{Name: provider, Package: "galera-4"},
			{Name: loadProgram, Package: "sysbench"},
		},
		Burst:   burst,
		Opaque:  true,
		Memory:  nodes*(homeSize+resident) + clientMemory,
		Cluster: &workload.Cluster{Key: "oltp", Pods: nodes, Ports: []uint16{databasePort}, Serve: serve, Dial: dial},
	}
}

// check returns an error that names the first parameter that is not usable, and what would be.
func check(p result.Params) error {
	if err := wrong(p); err != nil {
		return fmt.Errorf("oltp: %w", err)
	}
	return nil
}

func wrong(p result.Params) error {
	for _, none := range []struct {
		name string
		set  bool
	}{
		{"message", p.Message != 0}, {"rate", p.Rate != 0 || p.Search}, {"request rate", p.RequestRate != 0},
		{"congestion control", p.CongestionControl != ""}, {"nagle", p.Nagle}, {"busy poll", p.BusyPoll != 0},
	} {
		if none.set {
			return fmt.Errorf("%s is no parameter of this workload; leave it out", none.name)
		}
	}
	switch {
	case p.Connections < 0 || p.Connections > connectionsMost:
		return fmt.Errorf("connections %d is out of range: 1 to %d", p.Connections, connectionsMost)
	case p.CPU != "" && p.CPU != "any":
		return fmt.Errorf("cpu %q: a cluster of databases runs on any processor; leave it out", p.CPU)
	}
	if err := workload.CheckTarget(p, workload.SchemeMySQL); err != nil {
		return err
	}
	return result.Unused(p, parameters(), "target")
}

// Memory: homeSize is of a node's data, which lie in memory, resident what its daemon takes beside them at most, and
// clientMemory what the load generator does.
const (
	homeSize     = 384 * unit.MiB
	resident     = 256 * unit.MiB
	clientMemory = 64 * unit.MiB
)
