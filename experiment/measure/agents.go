package measure

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"

	"netdelta/agent"
	"netdelta/result"
	"netdelta/testbed"
)

// agents are the ones of a testbed that cells use. With an external target or a volume, servers holds clients.
type agents struct {
	client    *agent.Agent
	servers   map[result.Placement]*agent.Agent
	neighbour *agent.Agent // nil where no cell needs one
	sweeper   *agent.Agent // the build's; nil where there are no sweeps
}

// startAgents starts the agents of the client and of the servers that the cells need, all at once: a pod of a cluster takes seconds.
func (m *Context) startAgents(ctx context.Context, b *Build, tb testbed.Testbed, cells []result.Cell) (agents, error) {
	all := agents{servers: map[result.Placement]*agent.Agent{}}
	var mu sync.Mutex
	eg, ctx := errgroup.WithContext(ctx)
	start := func(pod testbed.Pod, keep func(*agent.Agent)) {
		eg.Go(func() error {
			a, err := m.startAgent(ctx, b, pod)
			mu.Lock()
			defer mu.Unlock()
			keep(a)
			return err
		})
	}
	spec := tb.Spec()
	external := spec.Target != "" || spec.Volume.Class != ""
	if !external {
		start(tb.Pods()[0], func(a *agent.Agent) { all.client = a })
	}
	if m.able.PinsCPUs && hasNeighbour(spec.Conditions) {
		start(neighbourPod(tb), func(a *agent.Agent) { all.neighbour = a })
	}
	started := map[result.Placement]bool{}
	for _, cell := range cells {
		if started[cell.Placement] || m.Clustered(cell) {
			continue
		}
		started[cell.Placement] = true
		pod, err := serverPod(tb, cell.Placement)
		if external && cell.Placement == result.SameNode { // the first pod is on the target's own node
			pod, err = tb.Pods()[0], nil
		}
		if err != nil {
			return all, errors.Join(err, eg.Wait())
		}
		start(pod, func(a *agent.Agent) { all.servers[cell.Placement] = a })
	}
	err := eg.Wait()
	if external {
		all.client = all.servers[cells[0].Placement]
	}
	return all, err
}

// agentIn is the build's agent in a pod, started if there is none.
func (m *Context) agentIn(ctx context.Context, b *Build, pod testbed.Pod) (*agent.Agent, error) {
	for _, a := range b.agents {
		if a.Pod().Name() == pod.Name() {
			return a, nil
		}
	}
	return m.startAgent(ctx, b, pod)
}

func (m *Context) startAgent(ctx context.Context, b *Build, pod testbed.Pod) (*agent.Agent, error) {
	a, err := agent.Start(ctx, pod, m.Program)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.agents = append(b.agents, a)
	return a, nil
}

// serverPod is the pod that serves the first pod in the given placement.
func serverPod(tb testbed.Testbed, placement result.Placement) (testbed.Pod, error) {
	client := tb.Pods()[0]
	for _, p := range tb.Pods()[1:] {
		if same := p.Node() == client.Node(); same == (placement == result.SameNode) {
			return p, nil
		}
	}
	return nil, fmt.Errorf("the testbed has no pod for a server %s: it needs two pods on the first node, or a second node", placement)
}
