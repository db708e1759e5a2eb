package experiment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"netdelta/agent"
	"netdelta/result"
	"netdelta/testbed"
)

// crew is the agents of one testbed. Where the server is none of netdelta's, those of the placements are clients.
type crew struct {
	client    *agent.Agent
	servers   map[result.Placement]*agent.Agent
	neighbour *agent.Agent // nil where no cell needs one
	// others are in pods of clusters where no other agent is, by pod.
	others map[string]*agent.Agent
}

// startAgents starts the client's agent and those of the servers that the cells need, all at once: a pod of a cluster takes seconds.
func (st *stage) startAgents(ctx context.Context, b *build, tb testbed.Testbed, cells []result.Cell) (crew, error) {
	if s := tb.Spec(); s.Target != "" || s.Volume.Class != "" {
		return st.startClients(ctx, b, tb, cells)
	}
	c := crew{servers: map[result.Placement]*agent.Agent{}, others: map[string]*agent.Agent{}}
	var mu sync.Mutex
	eg, ctx := errgroup.WithContext(ctx)
	start := func(pod testbed.Pod, keep func(*agent.Agent)) {
		eg.Go(func() error {
			a, err := st.startAgent(ctx, b, pod)
			mu.Lock()
			defer mu.Unlock()
			keep(a)
			return err
		})
	}
	start(tb.Pods()[0], func(a *agent.Agent) { c.client = a })
	if st.able.PinsCPUs && neighboured(tb.Spec().Conditions) {
		start(neighbourPod(tb), func(a *agent.Agent) { c.neighbour = a })
	}
	started := map[result.Placement]bool{}
	for _, cell := range cells {
		if started[cell.Placement] || demandOf(st.workloads, cell).Cluster != nil {
			continue
		}
		started[cell.Placement] = true
		pod, err := serverPod(tb, cell.Placement)
		if err != nil {
			return c, errors.Join(err, eg.Wait())
		}
		start(pod, func(a *agent.Agent) { c.servers[cell.Placement] = a })
	}
	err := eg.Wait()
	return c, err
}

// all are the agents of the crew, each once.
func (c crew) all() []*agent.Agent {
	all := []*agent.Agent{c.client}
	for _, a := range c.servers {
		all = append(all, a)
	}
	for _, a := range c.others {
		all = append(all, a)
	}
	return all
}

// agentIn is the crew's agent in a pod, started if there is none.
func (st *stage) agentIn(ctx context.Context, b *build, c crew, pod testbed.Pod) (*agent.Agent, error) {
	for _, a := range c.all() {
		if a.Pod().Name() == pod.Name() {
			return a, nil
		}
	}
	a, err := st.startAgent(ctx, b, pod)
	if err == nil {
		c.others[pod.Name()] = a
	}
	return a, err
}

func (st *stage) startAgent(ctx context.Context, b *build, pod testbed.Pod) (*agent.Agent, error) {
	a, err := agent.Start(ctx, pod, st.program)
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

// alive says whether all agents of the crew still take calls.
func (c crew) alive() bool {
	return !slices.ContainsFunc(c.all(), func(a *agent.Agent) bool { return !a.Alive() })
}
