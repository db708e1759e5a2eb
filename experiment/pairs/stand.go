package pairs

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/sync/errgroup"

	"netdelta/agent"
	"netdelta/result"
	"netdelta/stats"
	"netdelta/testbed"
	"netdelta/workload"
)

// stand is a network's testbed in one build, with an agent on each node that is client and server of all its pairs.
type stand struct {
	config  Config
	network *Network
	build   int
	tb      testbed.Testbed
	agents  []*agent.Agent // by pod; nil where none could be started
	seats   []*seat
}

// seat is a pair that is armed.
type seat struct {
	from, to int // pods
	session  int
	values   []float64
	lost     bool
}

// Patience with pods, and what is seen to at once.
const (
	dialPatience = 20 * time.Second
	dialPause    = 200 * time.Millisecond
	atOnce       = 16
)

// open sets a network up. It fails only where no pair is left, or with ctx; then nothing is left of it.
func open(ctx context.Context, c Config, n *Network, build int) (*stand, error) {
	spec := c.Spec
	spec.Network, spec.PodsPerNode = n.Network, 1
	tb, err := c.Driver.Open(ctx, spec)
	if err != nil {
		return nil, fmt.Errorf("network %s: %w", n.Network, err)
	}
	s := &stand{config: c, network: n, build: build, tb: tb, agents: make([]*agent.Agent, len(tb.Pods()))}
	s.start(ctx)
	s.arm(ctx)
	err = ctx.Err()
	if err == nil && len(s.seats) == 0 {
		err = errors.New("no pair of nodes could be connected")
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("network %s: %w", n.Network, err), s.close())
	}
	return s, nil
}

// anywhere is the address that stands for all of a pod's own.
func (s *stand) anywhere() netip.Addr {
	if s.config.Params.Family == result.IPv6 {
		return netip.IPv6Unspecified()
	}
	return netip.IPv4Unspecified()
}

// start starts an agent on each node, and has it serve.
func (s *stand) start(ctx context.Context) {
	errs := make([]error, len(s.agents))
	var eg errgroup.Group
	eg.SetLimit(atOnce)
	for i, pod := range s.tb.Pods() {
		eg.Go(func() error {
			s.agents[i], errs[i] = s.startIn(ctx, pod)
			return nil
		})
	}
	_ = eg.Wait() // nobody returns one
	for i, err := range errs {
		if err != nil {
			node := s.tb.Pods()[i].Node()
			s.network.Failures = append(s.network.Failures, Failure{Build: s.build, Client: node, Server: node, Why: err.Error()})
		}
	}
}

// startIn starts an agent in a pod, and has it serve.
func (s *stand) startIn(ctx context.Context, pod testbed.Pod) (*agent.Agent, error) {
	a, err := agent.Start(ctx, pod, s.config.Program)
	if err != nil {
		return nil, err
	}
	first, _ := pod.Ports()
	if _, err := a.Serve(ctx, s.config.Workload.Name, s.config.Params, netip.AddrPortFrom(s.anywhere(), first), -1); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
}

// arm connects all pairs. Each client connects to one server after another, and all clients at once.
func (s *stand) arm(ctx context.Context) {
	pods := s.tb.Pods()
	armed, failed := make([][]*seat, len(pods)), make([][]Failure, len(pods))
	var eg errgroup.Group
	eg.SetLimit(atOnce)
	for i, from := range pods {
		if s.agents[i] == nil {
			continue
		}
		eg.Go(func() error {
			for j, to := range pods {
				if s.agents[j] == nil || to.Node() == from.Node() {
					continue
				}
				session, err := s.dial(ctx, i, j)
				if err != nil {
					failed[i] = append(failed[i], Failure{Build: s.build, Client: from.Node(), Server: to.Node(), Why: err.Error()})
					continue
				}
				armed[i] = append(armed[i], &seat{from: i, to: j, session: session})
			}
			return nil
		})
	}
	_ = eg.Wait() // nobody returns one
	for i := range pods {
		s.seats, s.network.Failures = append(s.seats, armed[i]...), append(s.network.Failures, failed[i]...)
	}
}

// dial connects a pair. What has just been made is not always reachable at once.
func (s *stand) dial(ctx context.Context, from, to int) (session int, err error) {
	client, server := s.agents[from], s.agents[to]
	first, _ := server.Pod().Ports()
	remote := s.tb.Endpoint(client.Pod(), server.Pod(), first)
	for until := time.Now().Add(dialPatience); ; {
		session, err = client.Dial(ctx, s.config.Workload.Name, s.config.Params, netip.AddrPortFrom(s.anywhere(), 0), remote, -1)
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

// burst measures one pair. A pair whose burst fails is lost for the build.
func (s *stand) burst(ctx context.Context, at *seat) {
	spec := workload.BurstSpec{Duration: s.config.Burst, Warmup: s.config.Warmup, Deadline: s.config.Burst + s.config.Warmup + dialPatience}
	b, err := s.agents[at.from].Burst(ctx, at.session, spec)
	if ctx.Err() != nil {
		return
	}
	value := b.P50
	if !latencies(s.config.Workload) {
		value = b.Throughput
	}
	if err == nil && value <= 0 {
		err = errors.New("nothing got through in a burst")
	}
	if err != nil {
		at.lost = true
		pods := s.tb.Pods()
		s.network.Failures = append(s.network.Failures, Failure{Build: s.build, Client: pods[at.from].Node(), Server: pods[at.to].Node(), Why: err.Error()})
		return
	}
	at.values = append(at.values, value)
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

// settle writes down what the build measured.
func (s *stand) settle() {
	pods := s.tb.Pods()
	for _, at := range s.seats {
		if len(at.values) == 0 {
			continue
		}
		p := s.network.pair(pods[at.from].Node(), pods[at.to].Node())
		p.Builds = append(p.Builds, Value{Build: s.build, Bursts: len(at.values), Value: stats.Median(at.values)})
	}
}

// close ends the agents and removes the testbed. How an agent ends is no news.
func (s *stand) close() error {
	var eg errgroup.Group
	eg.SetLimit(atOnce)
	for _, a := range s.agents {
		if a != nil {
			eg.Go(func() error {
				_ = a.Close()
				return nil
			})
		}
	}
	_ = eg.Wait() // nobody returns one
	return s.tb.Close()
}
