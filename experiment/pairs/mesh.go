package pairs

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/sync/errgroup"

	"netdelta/agent"
	"netdelta/engine"
	"netdelta/experiment/record"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/workload"
)

// mesh is a network's testbed in one build, with an agent on each node that is client and server of all its pairs.
type mesh struct {
	config Config
	cell   result.Cell
	began  time.Time
	trial  result.Trial
	// tb is nil where the network could not be set up.
	tb          testbed.Testbed
	agents      []*agent.Agent // by pod; nil where none could be started
	connections []*connection
}

// connection is a pair that is ready for bursts.
type connection struct {
	from, to int // pods
	session  int
	pair     int // in the trial's pairs
}

// Patience with pods, and what is seen to at once.
const (
	dialPatience = 20 * time.Second
	dialPause    = 200 * time.Millisecond
	atOnce       = 16
)

// open sets a network up. It fails where no pair is left, or with ctx; the mesh then records why, and still has to be closed.
func open(ctx context.Context, c Config, cell result.Cell, build int) (*mesh, error) {
	m := &mesh{config: c, cell: cell, began: time.Now(), trial: result.Trial{Build: build, Started: time.Now()}}
	spec := c.Spec
	spec.Network, spec.PodsPerNode = cell.Network, 1
	var err error
	if m.tb, err = c.Driver.Open(ctx, spec); err == nil {
		m.agents = make([]*agent.Agent, len(m.tb.Pods()))
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
	}
	return m, err
}

// anywhere is the address that stands for all of a pod's own.
func (m *mesh) anywhere() netip.Addr {
	if m.config.Params.Family == result.IPv6 {
		return netip.IPv6Unspecified()
	}
	return netip.IPv4Unspecified()
}

// start starts an agent on each node, and has it serve. It returns what went wrong, by pod.
func (m *mesh) start(ctx context.Context) []error {
	errs := make([]error, len(m.agents))
	var eg errgroup.Group
	eg.SetLimit(atOnce)
	for i, pod := range m.tb.Pods() {
		eg.Go(func() error {
			m.agents[i], errs[i] = m.startIn(ctx, pod)
			return nil
		})
	}
	_ = eg.Wait() // errors are in errs
	return errs
}

// startIn starts an agent in a pod, and has it serve.
func (m *mesh) startIn(ctx context.Context, pod testbed.Pod) (*agent.Agent, error) {
	a, err := agent.Start(ctx, pod, m.config.Program)
	if err != nil {
		return nil, err
	}
	first, _ := pod.Ports()
	if _, err := a.Serve(ctx, m.config.Workload.Name, m.config.Params, netip.AddrPortFrom(m.anywhere(), first), -1); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
}

// connect connects all pairs of nodes with agents. Each client connects to one server after another, and all clients at once.
func (m *mesh) connect(ctx context.Context, lost []error) {
	pods := m.tb.Pods()
	pairs, made := make([][]result.NodePair, len(pods)), make([][]*connection, len(pods))
	var eg errgroup.Group
	eg.SetLimit(atOnce)
	for i, from := range pods {
		if lost[i] != nil {
			pairs[i] = []result.NodePair{{Client: from.Node(), Server: from.Node(), Failed: lost[i].Error()}}
			continue
		}
		eg.Go(func() error {
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
			return nil
		})
	}
	_ = eg.Wait() // errors are in pairs
	for i := range pods {
		for _, c := range made[i] {
			c.pair += len(m.trial.Pairs)
			m.connections = append(m.connections, c)
		}
		m.trial.Pairs = append(m.trial.Pairs, pairs[i]...)
	}
}

// dial connects a pair. What has just been made is not always reachable at once.
func (m *mesh) dial(ctx context.Context, from, to int) (session int, err error) {
	client, server := m.agents[from], m.agents[to]
	first, _ := server.Pod().Ports()
	remote := m.tb.Endpoint(client.Pod(), server.Pod(), first)
	for until := time.Now().Add(dialPatience); ; {
		session, err = client.Dial(ctx, m.config.Workload.Name, m.config.Params, netip.AddrPortFrom(m.anywhere(), 0), remote, -1)
		if err == nil || !client.Alive() || ctx.Err() != nil || time.Now().After(until) {
			return session, err
		}
		timer := time.NewTimer(dialPause)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
}

// burst measures one pair. A pair whose burst fails is left out of the rest of the build.
func (m *mesh) burst(ctx context.Context, at *connection, round int) {
	spec := engine.BurstSpec{Duration: m.config.Burst, Warmup: m.config.Warmup, Deadline: m.config.Burst + m.config.Warmup + dialPatience}
	start := time.Since(m.began)
	b, err := m.agents[at.from].Burst(ctx, at.session, spec)
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
	c, n := &m.trial.Bursts, len(m.agents)
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
	for _, m := range w.Metrics {
		if m.Name == "p50" {
			return true
		}
	}
	return false
}

// keep records what the build measured, or why it measured nothing.
func (m *mesh) keep(rec *record.Record) error {
	if m.trial.Failed == "" && len(m.trial.Bursts.Round) == 0 {
		return nil // it was interrupted
	}
	return rec.Add(m.cell, m.trial)
}

// close ends the agents and removes the testbed. Errors of ending agents are left out: nothing depends on them.
func (m *mesh) close() error {
	if m.tb == nil {
		return nil
	}
	var eg errgroup.Group
	eg.SetLimit(atOnce)
	for _, a := range m.agents {
		if a != nil {
			eg.Go(func() error {
				_ = a.Close()
				return nil
			})
		}
	}
	_ = eg.Wait() // it has no errors
	return m.tb.Close()
}
