// Package oltp is the workload oltp: sysbench's transactions on a cluster of three databases, MariaDB with Galera, in which
// each write takes part only when all nodes have it. The client speaks to the first node.
package oltp

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"netdelta/engine"
	"netdelta/network"
	"netdelta/result"
	"netdelta/unit"
	"netdelta/workload"
	"netdelta/workload/oltp/galera"
)

// burst is the shortest that says something: sysbench counts in whole seconds.
const burst = 2 * time.Second

// defaultConnections is how many connections a client has when nothing else is said.
const defaultConnections = 8

// Workload is oltp.
func Workload() workload.Workload {
	return workload.Workload{
		Name:        "oltp",
		Protocol:    network.TCP,
		Summary:     "transactions on a MariaDB Galera cluster of three nodes, by sysbench",
		UsedBy:      "web shops and everything else that keeps its data in a replicated SQL database",
		Headline:    "rate",
		Metrics:     append([]workload.Metric{{Name: "rate", Unit: "1/s", Better: "higher"}}, workload.LatencyMetrics()[:6]...), // without throughput
		Defaults:    result.Params{Connections: defaultConnections, CPU: "any", Own: result.Own{}.Or(parameters())},
		Parameters:  parameters(),
		Check:       check,
		SourcePorts: func(result.Params) int { return 0 }, // they are the kernel's to choose
		Demand:      demand,
		Target:      targeted(),
	}
}

// parameters are those that the workload declares: what transactions consist of, in sysbench's words.
func parameters() []result.Parameter {
	own := result.Exclusion{Key: "target", Why: "its tables are always the usual ones", Fix: "leave them out, or target, to measure a cluster of netdelta's own"}
	return result.Declare(
		result.Parameter{
			Key: "mix", Kind: result.KindWord, Words: "read_write|point_select|update_index|write_only", Default: "read_write",
			Says: "What transactions of a database consist of.",
		},
		result.Parameter{Key: "tables", Kind: result.KindCount, Low: 1, High: mostTables, Label: "% tables", Excludes: own, Says: "Tables that transactions choose among; 4 where it is left out."},
		result.Parameter{Key: "rows", Kind: result.KindCount, Low: leastRows, High: mostRows, Label: "% rows each", Excludes: own, Says: "Rows of each table, which lie in the memory of three nodes; 25,000 where it is left out."},
	)
}

// Bounds of the parameters.
const (
	mostTables = 64
	leastRows  = 100
	mostRows   = 100_000_000
)

// dataOf are the tables that parameters ask for.
func dataOf(p result.Params) galera.Data {
	return galera.Data{Tables: cmp.Or(p.Own.Count("tables"), galera.Usual().Tables), Rows: cmp.Or(p.Own.Count("rows"), galera.Usual().Rows)}
}

// demand is the same for all parameters with the same tables: they share one cluster.
func demand(p result.Params) workload.Demand {
	if p.Target != "" {
		return workload.Demand{Burst: burst, Opaque: true} // its programs are looked for in its pods
	}
	data := dataOf(p)
	return workload.Demand{
		Programs: galera.Programs(), Burst: burst, Opaque: true, Memory: data.Memory() + clientMemory,
		Cluster: &workload.Cluster{Key: data.Key(), Pods: galera.Nodes, Ports: []uint16{galera.Port}, Serve: serve, Dial: dial},
	}
}

// serve starts a node of the cluster.
func serve(ctx context.Context, p result.Params, at workload.Member) (engine.Server, error) {
	if err := check(p); err != nil {
		return nil, err
	}
	return galera.Serve(ctx, at, dataOf(p))
}

// check returns an error that names the first parameter that is not usable, and what would be.
func check(p result.Params) error {
	if p.CPU != "" && p.CPU != "any" {
		return fmt.Errorf("oltp: cpu %q: a cluster of databases runs on any processor; leave it out", p.CPU)
	}
	if err := workload.CheckTarget(p, workload.SchemeMySQL); err != nil {
		return fmt.Errorf("oltp: %w", err)
	}
	return engine.Limits{Workload: "oltp", ConnectionsMost: galera.MaxConnections, Own: parameters(), Used: []string{"target"}}.Check(p)
}

// clientMemory is what the load generator takes at most.
const clientMemory = 64 * unit.MiB
