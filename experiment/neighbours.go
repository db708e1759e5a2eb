package experiment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"netdelta/agent"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/workload"
)

// neighbourTurn is how long a neighbour works, and then sleeps, on average: together the 2 ms are in the range of what a
// scheduler gives to one of several tasks at a time, so that a burst of a few milliseconds meets some of them.
const neighbourTurn = time.Millisecond

// neighbours is how many tasks compete for each processor: together they want as much as one processor gives.
const neighbours = 2

// neighbour is a process in another pod that keeps processors busy while a cell is measured: those of the cell, where its
// class is best-effort, others where it is guaranteed. It rests whenever other cells are measured.
type neighbour struct {
	agent *agent.Agent
	cpus  []int
	seed  uint64
}

// neighboured tells whether a testbed needs a neighbour.
func neighboured(c result.Conditions) bool { return c.QoS != "" }

// withNeighbour makes room for a neighbour: a pod more on each node than the client and a server take.
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

// neighbourOf is the neighbour of a seat, nil for one that has none. The agent is that in the neighbour's pod.
func (st *stage) neighbourOf(s *seat, a *agent.Agent) *neighbour {
	own := slices.Compact(slices.Sorted(slices.Values(s.cpus.list())))
	if !st.able.PinsCPUs {
		return nil // there are no processors to compete for, or others do
	}
	switch s.cell.Params.Conditions.QoS {
	case result.BestEffort:
		return &neighbour{agent: a, cpus: slices.Repeat(own, neighbours), seed: st.seed}
	case result.Guaranteed:
		others := st.program.CPUs
		return &neighbour{agent: a, cpus: slices.Repeat(others[max(0, len(others)-len(own)):], neighbours), seed: st.seed}
	}
	return nil
}

// beside runs a burst while the neighbour is busy. Each cell of a round meets it with the same turns.
func (n *neighbour) beside(ctx context.Context, spec workload.BurstSpec, round int, burst func() error) error {
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

// crowded tells whether others are meant to take a seat's processors away.
func (s *seat) crowded() bool { return s.cell.Params.Conditions.QoS == result.BestEffort }

// refuseUnpinned takes out cells whose class of service needs processors that are not there.
func (p *Plan) refuseUnpinned() error {
	measuring, others, err := shareCPUs(p.Cells)
	if err != nil {
		return err
	}
	shared := slices.ContainsFunc(others, func(cpu int) bool { return slices.Contains(measuring, cpu) })
	for i, c := range p.Cells {
		qos := c.Params.Conditions.QoS
		switch {
		case qos == "" || c.Unsupported != "":
		case c.Params.CPU == "any":
			p.Cells[i].Unsupported = fmt.Sprintf("qos=%s is unsupported with cpu=any: it is about the processors that the workload is pinned to; say cpu: same or two", qos)
		case qos == result.Guaranteed && shared:
			p.Cells[i].Unsupported = fmt.Sprintf("qos=%s is unsupported here: needs more processors than the %d that this program may use, for the neighbours and itself; run it on a machine with more", qos, len(measuring))
		}
	}
	return nil
}
