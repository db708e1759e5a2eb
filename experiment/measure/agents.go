package measure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"netdelta/agent"
	"netdelta/result"
	"netdelta/testbed"
)

// agents are those of one testbed. With an external target or a volume, servers holds clients.
type agents struct {
	client    *agent.Agent
	servers   map[result.Placement]*agent.Agent
	neighbour *agent.Agent // nil where no cell needs one
	// others are in pods of clusters where no other agent is, by pod.
	others map[string]*agent.Agent
}

// startAgents starts the agents of the client and of the servers that the cells need, all at once: a pod of a cluster takes seconds.
func (m *Context) startAgents(ctx context.Context, b *Build, tb testbed.Testbed, cells []result.Cell) (agents, error) {
	if s := tb.Spec(); s.Target != "" || s.Volume.Class != "" {
		return m.startClients(ctx, b, tb, cells)
	}
	all := agents{servers: map[result.Placement]*agent.Agent{}, others: map[string]*agent.Agent{}}
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
	start(tb.Pods()[0], func(a *agent.Agent) { all.client = a })
	if m.able.PinsCPUs && hasNeighbour(tb.Spec().Conditions) {
		start(neighbourPod(tb), func(a *agent.Agent) { all.neighbour = a })
	}
	started := map[result.Placement]bool{}
	for _, cell := range cells {
		if started[cell.Placement] || m.Clustered(cell) {
			continue
		}
		started[cell.Placement] = true
		pod, err := serverPod(tb, cell.Placement)
		if err != nil {
			return all, errors.Join(err, eg.Wait())
		}
		start(pod, func(a *agent.Agent) { all.servers[cell.Placement] = a })
	}
	err := eg.Wait()
	return all, err
}

// startClients starts an agent for each placement, in the pod whose node it asks for: the first one is on the target's own.
func (m *Context) startClients(ctx context.Context, b *Build, tb testbed.Testbed, cells []result.Cell) (agents, error) {
	all := agents{servers: map[result.Placement]*agent.Agent{}, others: map[string]*agent.Agent{}}
	for _, cell := range cells {
		if all.servers[cell.Placement] != nil {
			continue
		}
		pod := tb.Pods()[0]
		if cell.Placement == result.CrossNode {
			var err error
			if pod, err = serverPod(tb, result.CrossNode); err != nil {
				return all, err
			}
		}
		a, err := m.startAgent(ctx, b, pod)
		if err != nil {
			return all, err
		}
		all.servers[cell.Placement] = a
		all.client = cmp.Or(all.client, a)
	}
	return all, nil
}

// all lists the agents, each once.
func (a agents) all() []*agent.Agent {
	all := []*agent.Agent{a.client}
	all = slices.AppendSeq(all, maps.Values(a.servers))
	return slices.AppendSeq(all, maps.Values(a.others))
}

// agentIn is the agent in a pod, started if there is none.
func (m *Context) agentIn(ctx context.Context, b *Build, known agents, pod testbed.Pod) (*agent.Agent, error) {
	for _, a := range known.all() {
		if a.Pod().Name() == pod.Name() {
			return a, nil
		}
	}
	a, err := m.startAgent(ctx, b, pod)
	if err == nil {
		known.others[pod.Name()] = a
	}
	return a, err
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

// alive says whether all agents still take calls.
func (a agents) alive() bool {
	return !slices.ContainsFunc(a.all(), func(a *agent.Agent) bool { return !a.Alive() })
}
