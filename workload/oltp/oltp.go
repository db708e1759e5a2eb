package oltp

import (
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
		Programs: galera.Programs(), Burst: burst, Opaque: true, Memory: galera.Memory + clientMemory,
		Cluster: &workload.Cluster{Key: "oltp", Pods: galera.Nodes, Ports: []uint16{galera.Port}, Serve: serve, Dial: dial},
	}
}

// serve starts a node of the cluster.
func serve(ctx context.Context, p result.Params, at workload.Member) (engine.Server, error) {
	if err := check(p); err != nil {
		return nil, err
	}
	return galera.Serve(ctx, at)
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
