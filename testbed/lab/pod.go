package lab

import (
	"context"
	"fmt"
	"net/netip"

	"netdelta/testbed"
)

// pod is an endpoint of a lab.
type pod struct {
	lab   *Testbed
	index int
}

var _ testbed.Pod = (*pod)(nil)

// Name implements testbed.Pod.
func (p *pod) Name() string { return p.lab.topo.Pods[p.index].Name }

// Node implements testbed.Pod.
func (p *pod) Node() string { return p.lab.topo.Nodes[p.lab.topo.Pods[p.index].Node].Name }

// Address implements testbed.Pod. Under host networking it is the node's.
func (p *pod) Address() netip.Addr { return p.lab.Plan().Pods[p.index].Address }

// Ports implements testbed.Pod.
func (p *pod) Ports() (first, last uint16) {
	own := p.lab.topo.Pods[p.index]
	return own.FirstPort, own.LastPort
}

// Start implements testbed.Pod. The context covers the start, not the life of the process.
func (p *pod) Start(ctx context.Context, cmd testbed.Command) (testbed.Process, error) {
	p.lab.mu.RLock()
	defer p.lab.mu.RUnlock()
	fail := func(err error) (testbed.Process, error) {
		return nil, fmt.Errorf("start %s in %s: %w", cmd.Path, p.Name(), err)
	}
	if err := ctx.Err(); err != nil {
		return fail(err)
	}
	if p.lab.closed {
		return fail(ErrClosed)
	}
	s := p.lab.spaces[p.lab.plan.Pods[p.index].In]
	if s == nil {
		return fail(fmt.Errorf("the pod has no network namespace"))
	}
	group, err := p.lab.enter()
	if err != nil {
		return fail(err)
	}
	defer closeFiles(group)
	started, err := startIn(s.ns, group, cmd, p.lab.mark, p.Name())
	if err != nil {
		return fail(err)
	}
	p.lab.running.add(started)
	return started, nil
}
