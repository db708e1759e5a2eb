package lab

import (
	"context"
	"errors"
	"fmt"

	"netdelta/network"
	"netdelta/testbed"
)

// Part is which part of a testbed a lab builds: one node, on a machine that is joined to those of the others.
type Part struct {
	Node int
	// Card is the name of the network card of this machine that leads to the others. The lab takes it, and gives it back.
	Card string
}

// OpenPart builds the part of a testbed that concerns one node. All pods are in its list; those of other nodes have no namespace
// here.
func (d *Driver) OpenPart(ctx context.Context, spec testbed.Spec, part Part) (*Testbed, error) {
	t, err := network.NewTopology(network.Layout{
		Nodes: spec.Nodes, PodsPerNode: spec.PodsPerNode, Family: spec.Family, MTU: spec.Link.MTU, Rate: spec.Link.Rate,
		PodsOutlive: spec.PodsOutlive, Conditions: spec.Conditions,
	})
	if err != nil {
		return nil, fmt.Errorf("open a part of a lab: %w", err)
	}
	spec.Link.MTU = t.MTU
	l, err := newTestbed(d, spec, t)
	if err != nil {
		return nil, fmt.Errorf("open a part of a lab: %w", err)
	}
	l.part = &part
	if err := l.build(ctx, spec.Network); err != nil {
		return nil, errors.Join(fmt.Errorf("open a part of a lab: %w", err), l.Close())
	}
	return l, nil
}

// planned plans a network, of which a part takes its own.
func (l *Testbed) planned(ctx context.Context, name string) (network.Plan, error) {
	p, err := l.driver.plan(ctx, name, l.topo)
	if err != nil || l.part == nil {
		return p, err
	}
	return p.Part(l.part.Node)
}

// card is the name of the network card that a part's node gets.
func (l *Testbed) card() string {
	if l.part == nil {
		return ""
	}
	return l.part.Card
}
