package pairs

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"netdelta/agent"
	"netdelta/engine"
	"netdelta/experiment/endpoint"
	"netdelta/experiment/record"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/workload"
)

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
