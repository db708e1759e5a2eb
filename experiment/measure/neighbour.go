package measure

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"netdelta/agent"
	"netdelta/engine"
	"netdelta/result"
	"netdelta/testbed"
)

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
