package measure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"netdelta/agent"
	"netdelta/engine"
	"netdelta/internal/netns"
	"netdelta/network"
	"netdelta/probe/path"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/workload"
)

// LocalPair is both ends of a cell in this process, on an open connection and stamped by one clock. Each end opens its socket in its
// pod's network namespace. Close is idempotent.
type LocalPair struct {
	engine.ExactPair
	Testbed        testbed.Testbed
	Client, Server testbed.Pod
	// Protocol carries the payload, Remote is where the client reaches the server, Listen the server's port.
	Protocol network.Protocol
	Remote   netip.AddrPort
	Listen   uint16

	cell   result.Cell // with the workload's default message
	within func(name string, f func(fd int) error) error
	owns   bool // the testbed is closed with the pair
}

// OpenPair builds the network of a cell and opens both ends of the cell on it, pinned to the first of the measuring processors. The
// testbed is closed with the pair.
func (m *Context) OpenPair(ctx context.Context, cell result.Cell) (*LocalPair, error) {
	tb, err := m.Open(ctx, Group{GroupOf(cell), []result.Cell{cell}})
	if err != nil {
		return nil, err
	}
	cpu := -1
	if len(m.Measuring) > 0 {
		cpu = m.Measuring[0]
	}
	p, err := m.PairOn(ctx, tb, cell, cpu)
	if err != nil {
		return nil, errors.Join(err, tb.Close())
	}
	p.owns = true
	return p, nil
}

// PairOn opens both ends of a cell on a testbed, pinned to a processor unless cpu is negative.
func (m *Context) PairOn(ctx context.Context, tb testbed.Testbed, c result.Cell, cpu int) (*LocalPair, error) {
	within := tb.Instruments().Within
	if within == nil {
		return nil, fmt.Errorf("%s: this testbed has no namespaces that this process could enter: both ends in one process need the lab", c.ID)
	}
	w := workload.Find(m.Workloads, c.Workload)
	if w.Exact == nil {
		return nil, fmt.Errorf("%s: workload %s has no exact meaning: its ends can't be stamped by one clock", c.ID, c.Workload)
	}
	c.Params.Message = cmp.Or(c.Params.Message, w.Defaults.Message)
	server, err := serverPod(tb, c.Placement)
	if err != nil {
		return nil, err
	}
	listen, local, err := m.portsOf(c).Addresses(server, c.Params.Family)
	if err != nil {
		return nil, err
	}
	p := &LocalPair{Testbed: tb, Client: tb.Pods()[0], Server: server, Protocol: w.Protocol, Listen: listen.Port(), cell: c, within: within}
	p.Remote = tb.Endpoint(p.Client, p.Server, p.Listen)
	p.ExactPair, err = w.Exact(ctx, engine.ExactSpec{
		Params: c.Params, Listen: listen, Local: local, Server: p.Remote, AtClient: p.Inside(p.Client), AtServer: p.Inside(p.Server),
	}, cpu)
	return p, err
}

// Inside runs functions inside the network namespace of a pod of the pair's testbed.
func (p *LocalPair) Inside(pod testbed.Pod) func(func() error) error {
	return func(f func() error) error {
		return p.within(pod.Name(), func(fd int) error { return netns.Within(fd, f) })
	}
}

// Prove runs the first transactions and observes their path, where the testbed shows it.
func (p *LocalPair) Prove(ctx context.Context) (*result.Path, error) {
	prover := path.NewProver(p.Testbed)
	if prover == nil {
		_, err := p.Exchange(proofLeast)
		return nil, err
	}
	proof, err := prover.Prove(ctx, p.Client, p.Server, p.Protocol, func(context.Context) (path.Load, error) {
		_, err := p.Exchange(proofLeast)
		payload := proofLeast * p.cell.Params.Message
		load := path.Load{Protocol: p.Protocol, Server: p.Remote, Requests: payload, Responses: payload}
		if p.Protocol == network.UDP {
			load.Message = p.cell.Params.Message
		}
		return load, err
	})
	return &proof, err
}

// Message is the payload of a request and of its response, in bytes.
func (p *LocalPair) Message() int { return int(p.cell.Params.Message) }

// Close ends the connection and, where it is the pair's own, removes the testbed.
func (p *LocalPair) Close() error {
	var errs []error
	if p.ExactPair != nil {
		errs = append(errs, p.ExactPair.Close())
	}
	if p.owns {
		errs = append(errs, p.Testbed.Close())
	}
	return errors.Join(errs...)
}

// Spaces names the network namespaces of the session's testbed by the numbers of their inodes: pods, nodes and the switch between
// them. Where the testbed does not show them, only the two ends have names.
func (s *Session) Spaces() (map[uint32]string, error) {
	names := map[uint32]string{}
	shows := s.testbed.Instruments()
	if shows.Observer == nil || shows.Within == nil {
		for _, end := range s.agents() {
			var st unix.Stat_t
			if err := unix.Stat(fmt.Sprintf("/proc/%d/ns/net", end.PID()), &st); err != nil {
				return nil, fmt.Errorf("find the network namespace of %s: %w", end.Pod().Name(), err)
			}
			names[uint32(st.Ino)] = end.Pod().Name()
		}
		return names, nil
	}
	numbers, err := SpaceNumbers(shows)
	for number, space := range numbers {
		names[number] = space.String()
	}
	return names, err
}

// Testbed is the testbed that the session's network was built in.
func (s *Session) Testbed() testbed.Testbed { return s.testbed }

// SpaceNumbers finds the network namespaces of a testbed on this machine by the numbers of their inodes, as tracers and
// profilers see them.
func SpaceNumbers(shows testbed.Instruments) (map[uint32]network.Space, error) {
	numbers := map[uint32]network.Space{}
	for _, space := range shows.Observer.Plan().Spaces() {
		err := shows.Within(space.String(), func(fd int) error {
			var st unix.Stat_t
			if err := unix.Fstat(fd, &st); err != nil {
				return fmt.Errorf("find the number of %s: %w", space, err)
			}
			numbers[uint32(st.Ino)] = space
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return numbers, nil
}

// neighbourTurn is how long a neighbour works, and then sleeps, on average: together the 2 ms are in the range of what a
// scheduler gives to one of several tasks at a time, so that a burst of a few milliseconds meets some of them.
const neighbourTurn = time.Millisecond

// neighbourTasks is how many tasks compete for each processor: together they want as much as one processor gives.
const neighbourTasks = 2

// neighbour is a process in another pod that keeps processors busy while a cell is measured: the cell's own under best-effort,
// others under guaranteed. It rests whenever other cells are measured.
type neighbour struct {
	agent *agent.Agent
	cpus  []int
	seed  uint64
}

// hasNeighbour tells whether a testbed needs a neighbour.
func hasNeighbour(c result.Conditions) bool { return c.QoS != "" }

// withNeighbour makes room for a neighbour: one pod more on each node than the client and a server take.
func withNeighbour(s testbed.Spec) testbed.Spec {
	const clientAndServer = 2
	s.PodsPerNode = max(s.PodsPerNode, clientAndServer) + 1
	return s
}

// neighbourPod is the last pod of the client's node.
func neighbourPod(tb testbed.Testbed) testbed.Pod {
	client := tb.Pods()[0]
	last := client
	for _, p := range tb.Pods() {
		if p.Node() == client.Node() {
			last = p
		}
	}
	return last
}

// neighbourOf is the neighbour of a session, nil without one. The agent is in the neighbour's pod.
func (m *Context) neighbourOf(s *Session, a *agent.Agent) *neighbour {
	own := slices.Compact(slices.Sorted(slices.Values(s.cpus.list())))
	if !m.able.PinsCPUs {
		return nil // there are no processors to compete for, or others do
	}
	switch s.Cell.Params.Conditions.QoS {
	case result.BestEffort:
		return &neighbour{agent: a, cpus: slices.Repeat(own, neighbourTasks), seed: m.seed}
	case result.Guaranteed:
		others := m.Program.CPUs
		return &neighbour{agent: a, cpus: slices.Repeat(others[max(0, len(others)-len(own)):], neighbourTasks), seed: m.seed}
	}
	return nil
}

// during runs a burst while the neighbour is busy. Each cell of a round meets it with the same turns.
func (n *neighbour) during(ctx context.Context, spec engine.BurstSpec, round int, burst func() error) error {
	if n == nil {
		return burst()
	}
	b := agent.Burning{CPUs: n.cpus, Seed: n.seed + uint64(round), Turn: neighbourTurn, Longest: spec.Deadline}
	if err := n.agent.Burn(ctx, b); err != nil {
		return fmt.Errorf("wake the neighbour: %w", err)
	}
	err := burst()
	if restErr := n.agent.Rest(ctx); restErr != nil {
		err = errors.Join(err, fmt.Errorf("put the neighbour to rest: %w", restErr))
	}
	return err
}
