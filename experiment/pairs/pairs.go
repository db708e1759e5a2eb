// Package pairs measures every ordered pair of a testbed's nodes against each other, one pair at a time, in rounds of random
// order: what is slow about one node, or between two, stands out from the others.
package pairs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"netdelta/agent"
	"netdelta/engine"
	"netdelta/experiment/endpoint"
	"netdelta/experiment/record"
	"netdelta/internal/gather"
	"netdelta/result"
	"netdelta/stats"
	"netdelta/testbed"
	"netdelta/workload"
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

// mesh is a network's testbed in one build, with an agent on each node that is client and server of all its pairs.
type mesh struct {
	config Config
	began  time.Time
	trial  result.Trial
	// tb is nil where the network could not be set up.
	tb          testbed.Testbed
	agents      record.Agents
	byPod       []*agent.Agent // nil where none could be started
	connections []*connection
}

// connection is a pair that is ready for bursts.
type connection struct {
	from, to int // pods
	session  int
	pair     int // in the trial's pairs
}

// overtime is how much longer than it should a burst may take.
const overtime = 20 * time.Second

// open sets a network up. It fails where no pair is left, or with ctx; the mesh then records why, and still has to be closed.
func open(ctx context.Context, c Config, builds record.Builds, cell result.Cell, build int) (*mesh, error) {
	m := &mesh{
		config: c, began: time.Now(), trial: result.Trial{Build: build, Started: time.Now()}, agents: record.Agents{Program: c.Program},
	}
	spec := c.Spec
	spec.Network, spec.PodsPerNode = cell.Network, 1
	var err error
	if m.tb, err = c.Driver.Open(ctx, spec); err == nil {
		m.byPod = make([]*agent.Agent, len(m.tb.Pods()))
		m.connect(ctx, m.start(ctx))
		err = ctx.Err()
		if err == nil && len(m.connections) == 0 {
			err = errors.New("no pair of nodes could be connected")
		}
	}
	if err != nil {
		err = fmt.Errorf("network %s: %w", cell.Network, err)
		if ctx.Err() == nil {
			m.trial.Failed = err.Error()
		}
		return m, err
	}
	builds.Logf("build %d of %d, %s: %d pairs connected after %v", build+1, c.Builds, cell.Network, len(m.connections), time.Since(m.began).Round(time.Millisecond))
	return m, nil
}

// start starts an agent on each node, and has it serve. It returns what went wrong, by pod.
func (m *mesh) start(ctx context.Context) []error {
	errs := make([]error, len(m.byPod))
	m.agents.Each(len(errs), func(i int) { m.byPod[i], errs[i] = m.startIn(ctx, m.tb.Pods()[i]) })
	return errs
}

// startIn starts an agent in a pod, and has it serve.
func (m *mesh) startIn(ctx context.Context, pod testbed.Pod) (*agent.Agent, error) {
	a, err := m.agents.Start(ctx, pod)
	if err != nil {
		return nil, err
	}
	first, _ := pod.Ports()
	_, err = a.Serve(ctx, m.config.Workload.Name, m.config.Params, netip.AddrPortFrom(endpoint.AnyAddress(m.config.Params.Family), first), -1)
	return a, err
}

// connect connects all pairs of nodes with agents. Each client connects to one server after another, and all clients at once.
func (m *mesh) connect(ctx context.Context, lost []error) {
	pods := m.tb.Pods()
	pairs, made := make([][]result.NodePair, len(pods)), make([][]*connection, len(pods))
	m.agents.Each(len(pods), func(i int) {
		from := pods[i]
		if lost[i] != nil {
			pairs[i] = []result.NodePair{{Client: from.Node(), Server: from.Node(), Failed: lost[i].Error()}}
			return
		}
		for j, to := range pods {
			if lost[j] != nil || to.Node() == from.Node() {
				continue
			}
			pair := result.NodePair{Client: from.Node(), Server: to.Node()}
			session, err := m.dial(ctx, i, j)
			if err != nil {
				pair.Failed = err.Error()
			} else {
				made[i] = append(made[i], &connection{from: i, to: j, session: session, pair: len(pairs[i])})
			}
			pairs[i] = append(pairs[i], pair)
		}
	})
	for i := range pods {
		for _, c := range made[i] {
			c.pair += len(m.trial.Pairs)
			m.connections = append(m.connections, c)
		}
		m.trial.Pairs = append(m.trial.Pairs, pairs[i]...)
	}
}

// dial connects a pair.
func (m *mesh) dial(ctx context.Context, from, to int) (session int, err error) {
	client, server := m.byPod[from], m.byPod[to]
	first, _ := server.Pod().Ports()
	local, remote := netip.AddrPortFrom(endpoint.AnyAddress(m.config.Params.Family), 0), m.tb.Endpoint(client.Pod(), server.Pod(), first)
	return record.Dial(ctx, client, func() (int, error) {
		return client.Dial(ctx, m.config.Workload.Name, m.config.Params, local, remote, -1)
	})
}

// burst measures one pair. A pair whose burst fails is left out of the rest of the build.
func (m *mesh) burst(ctx context.Context, at *connection, round int) {
	spec := engine.BurstSpec{Duration: m.config.Burst, Warmup: m.config.Warmup, Deadline: m.config.Burst + m.config.Warmup + overtime}
	start := time.Since(m.began)
	b, err := m.byPod[at.from].Burst(ctx, at.session, spec)
	if ctx.Err() != nil {
		return
	}
	waits := latencies(m.config.Workload)
	if err == nil && (waits && b.P50 <= 0 || !waits && b.Throughput <= 0) {
		err = errors.New("nothing got through in a burst")
	}
	if err != nil {
		m.trial.Pairs[at.pair].Failed = err.Error()
		return
	}
	m.trial.Transactions, m.trial.Bytes = m.trial.Transactions+b.Transactions, m.trial.Bytes+b.Bytes
	m.trial.Sent, m.trial.Lost = m.trial.Sent+b.Sent, m.trial.Lost+b.Lost
	c, n := &m.trial.Bursts, len(m.byPod)
	// Each pair has rounds of its own, which are the same in all networks.
	c.Round, c.Pair = append(c.Round, (round*n+at.from)*n+at.to), append(c.Pair, at.pair)
	c.Start, c.Duration = append(c.Start, start.Nanoseconds()), append(c.Duration, b.Duration.Nanoseconds())
	c.Transactions, c.Lost = append(c.Transactions, b.Transactions), append(c.Lost, b.Lost)
	if !waits {
		c.Throughput = append(c.Throughput, b.Throughput)
		return
	}
	c.Min, c.P50, c.P90 = append(c.Min, b.Min), append(c.P50, b.P50), append(c.P90, b.P90)
	c.Mean, c.Max = append(c.Mean, b.Mean), append(c.Max, b.Max)
}

// latencies says whether a workload has any.
func latencies(w workload.Workload) bool {
	return slices.ContainsFunc(w.Metrics, func(m workload.Metric) bool { return m.Name == "p50" })
}

// Trial is what the build measured, or why it measured nothing.
func (m *mesh) Trial() (t result.Trial, keep bool, err error) {
	return m.trial, m.trial.Failed != "" || len(m.trial.Bursts.Round) > 0, nil // otherwise it was interrupted
}

// Close ends the agents and removes the testbed.
func (m *mesh) Close() error {
	m.agents.Close()
	if m.tb == nil {
		return nil
	}
	return m.tb.Close()
}
