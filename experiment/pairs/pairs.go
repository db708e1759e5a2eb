// Package pairs measures every ordered pair of a testbed's nodes against each other, one pair at a time, in rounds of random
// order: what is slow about one node, or between two, stands out from the others.
package pairs

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"netdelta/experiment/record"
	"netdelta/internal/gather"
	"netdelta/result"
	"netdelta/stats"
	"netdelta/testbed"
)

// MaxNodes is how many nodes may be paired: the pairs are their square.
const MaxNodes = 100

// Config is what to measure, and where.
type Config struct {
	Driver testbed.Provider
	// Spec is the testbed of each network, with one pod on each node. The network is filled in.
	Spec testbed.Spec
	record.Load
	// Rounds is how often each pair is measured in each build.
	Rounds int
	// Margin is the share by which a node must differ from the others to be called odd.
	Margin float64
}

// Check says what is wrong with a configuration.
func (c Config) Check() error {
	switch {
	case c.Spec.Nodes < 2 || c.Spec.Nodes > MaxNodes:
		return fmt.Errorf("%d nodes: pairs need 2 to %d", c.Spec.Nodes, MaxNodes)
	case c.Rounds < 1:
		return fmt.Errorf("%d rounds: need at least 1", c.Rounds)
	case c.Margin <= 0 || c.Margin >= 1:
		return fmt.Errorf("--margin %v: need a share between 0 and 1", c.Margin)
	}
	return c.CheckLoad()
}

// Head implements record.Strategy.
func (c Config) Head() result.Run {
	return result.Run{
		Seed: c.Seed, Margin: c.Margin, Strategy: &result.Strategy{Name: result.StrategyPairs, Burst: c.Burst},
		Cells: record.Cells(c.Networks, c.Workload.Name, c.Params, false),
	}
}

// Measure implements record.Strategy.
func (c Config) Measure(ctx context.Context, rec *record.Record) error {
	builds := c.BuildsOf(rec)
	open := func(ctx context.Context, cell result.Cell, build int) (*mesh, error) {
		return open(ctx, c, builds, cell, build)
	}
	err := record.Measure(ctx, builds, open, c.rounds)
	if err != nil || slices.ContainsFunc(rec.Trials, func(t result.Trial) bool { return len(t.Bursts.Round) > 0 }) {
		return err
	}
	why := "no pair of nodes could be connected"
	if all := Of(rec.Run, rec.Trials).Networks[0].Failures; len(all) > 0 {
		why = all[0].Why
	}
	return fmt.Errorf("%w: %s", record.ErrNothing, why)
}

// rounds measures all pairs of all networks, in rounds of random order.
func (c Config) rounds(ctx context.Context, rng *rand.Rand, ready []*mesh) error {
	type turn struct {
		*mesh
		*connection
	}
	var turns []turn
	for _, m := range ready {
		for _, at := range m.connections {
			turns = append(turns, turn{m, at})
		}
	}
	for round := range c.Rounds {
		rng.Shuffle(len(turns), func(i, j int) { turns[i], turns[j] = turns[j], turns[i] })
		for _, t := range turns {
			if t.trial.Pairs[t.pair].Failed != "" {
				continue
			}
			t.burst(ctx, t.connection, round)
			if err := ctx.Err(); err != nil {
				return err
			}
		}
	}
	return nil
}

// Outcome is what was measured of all pairs.
type Outcome struct {
	Testbed  string        `json:"testbed"`
	Workload string        `json:"workload"`
	Params   result.Params `json:"params"`
	// Metric is the metric of all values, in Unit: p50, or throughput for workloads without latencies.
	Metric   string        `json:"metric"`
	Unit     string        `json:"unit"`
	Better   string        `json:"better"`
	Burst    time.Duration `json:"burst_ns"`
	Seed     uint64        `json:"seed"`
	Started  time.Time     `json:"started"`
	Finished time.Time     `json:"finished"`
	// Nodes are in the testbed's order.
	Nodes    []string  `json:"nodes"`
	Networks []Network `json:"networks"`
}

// Network is what was measured in one network.
type Network struct {
	Network string `json:"network"`
	// Pairs are all ordered pairs of nodes, by client and then by server.
	Pairs []Pair `json:"pairs"`
	// Failures are nodes, pairs and builds of which nothing could be measured.
	Failures []Failure `json:"failures,omitempty"`
}

// Pair is what was measured from a client's node to a server's.
type Pair struct {
	Client string  `json:"client"`
	Server string  `json:"server"`
	Builds []Value `json:"builds"`
}

// Value is what one build measured of a pair: the median of its bursts.
type Value struct {
	Build  int     `json:"build"`
	Bursts int     `json:"bursts"`
	Value  float64 `json:"value"`
}

// Failure is what could not be measured.
type Failure struct {
	Build  int    `json:"build"`
	Client string `json:"client,omitempty"`
	Server string `json:"server,omitempty"`
	Why    string `json:"why"`
}

// Of reads the outcome of a run from its record.
func Of(run result.Run, trials []result.Trial) Outcome {
	o := Outcome{Testbed: run.Testbed, Metric: "p50", Unit: "ns", Better: "lower", Seed: run.Seed, Started: run.Started, Finished: run.Finished}
	if run.Strategy != nil {
		o.Burst = run.Strategy.Burst
	}
	for _, t := range trials {
		if len(t.Bursts.Throughput) > 0 {
			o.Metric, o.Unit, o.Better = "throughput", "bit/s", "higher"
		}
		for _, p := range t.Pairs {
			o.Nodes = gather.Once(o.Nodes, p.Client)
		}
	}
	for _, c := range run.Cells {
		o.Workload, o.Params = c.Workload, c.Params
		n := Network{Network: c.Network}
		for _, t := range trials {
			if t.Cell == c.ID {
				n.add(t, o.Metric)
			}
		}
		slices.SortFunc(n.Pairs, func(a, b Pair) int {
			return cmp.Or(o.compare(a.Client, b.Client), o.compare(a.Server, b.Server))
		})
		o.Networks = append(o.Networks, n)
	}
	return o
}

// compare orders nodes as the outcome does: -1, 0 or 1.
func (o *Outcome) compare(a, b string) int {
	return cmp.Or(cmp.Compare(slices.Index(o.Nodes, a), slices.Index(o.Nodes, b)), cmp.Compare(a, b))
}

// add takes in what one build of the network measured.
func (n *Network) add(t result.Trial, metric string) {
	column := t.Bursts.P50
	if metric == "throughput" {
		column = t.Bursts.Throughput
	}
	values := make([][]float64, len(t.Pairs))
	for i, pair := range t.Bursts.Pair {
		values[pair] = append(values[pair], column[i])
	}
	for i, p := range t.Pairs {
		if p.Failed != "" {
			n.Failures = append(n.Failures, Failure{Build: t.Build, Client: p.Client, Server: p.Server, Why: p.Failed})
		}
		if len(values[i]) > 0 {
			v := n.pair(p.Client, p.Server)
			v.Builds = append(v.Builds, Value{Build: t.Build, Bursts: len(values[i]), Value: stats.Median(values[i])})
		}
	}
	if t.Failed != "" {
		n.Failures = append(n.Failures, Failure{Build: t.Build, Why: t.Failed})
	}
}

// pair finds the pair of two nodes, and adds it if it is missing.
func (n *Network) pair(client, server string) *Pair {
	for i := range n.Pairs {
		if n.Pairs[i].Client == client && n.Pairs[i].Server == server {
			return &n.Pairs[i]
		}
	}
	n.Pairs = append(n.Pairs, Pair{Client: client, Server: server})
	return &n.Pairs[len(n.Pairs)-1]
}
