package experiment

import (
	"context"
	"fmt"
	"slices"

	"netdelta/internal/agent"
	"netdelta/result"
	"netdelta/testbed"
)

// crew is the agents of one testbed.
type crew struct {
	client    *agent.Agent
	servers   map[result.Placement]*agent.Agent
	neighbour *agent.Agent // nil where no cell needs one
	// others are in pods of clusters where no other agent is, by pod.
	others map[string]*agent.Agent
}

// startAgents starts the client's agent and those of the servers that the cells need.
func (st *stage) startAgents(ctx context.Context, b *build, tb testbed.Testbed, cells []result.Cell) (crew, error) {
	c := crew{servers: map[result.Placement]*agent.Agent{}, others: map[string]*agent.Agent{}}
	client, err := st.startAgent(ctx, b, tb.Pods()[0])
	if err != nil {
		return c, err
	}
	c.client = client
	if neighboured(tb.Spec().Conditions) {
		if c.neighbour, err = st.startAgent(ctx, b, neighbourPod(tb)); err != nil {
			return c, err
		}
	}
	for _, cell := range cells {
		if c.servers[cell.Placement] != nil || demandOf(st.workloads, cell).Cluster != nil {
			continue
		}
		pod, err := serverPod(tb, cell.Placement)
		if err != nil {
			return c, err
		}
		if c.servers[cell.Placement], err = st.startAgent(ctx, b, pod); err != nil {
			return c, err
		}
	}
	return c, nil
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
