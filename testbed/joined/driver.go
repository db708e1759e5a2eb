package joined

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"netdelta/network"
	"netdelta/testbed"
	"netdelta/testbed/lab"
	"netdelta/testbed/remote"
)

// Node is a machine that a node is on.
type Node struct {
	Machine *remote.Machine
	// Cards are the addresses of its network cards that lead to the other nodes. Each testbed takes one, the same one everywhere: the
	// first of all nodes are on one wire, the second on another.
	Cards []string
}

// Driver opens testbeds whose nodes are machines. It is safe for concurrent use.
type Driver struct {
	name     string
	networks []network.Network
	nodes    []Node

	mu    sync.Mutex
	taken map[int]bool // which wires
}

var _ testbed.Provider = (*Driver)(nil)

// NewDriver is a driver of that name for the given machines.
func NewDriver(name string, networks []network.Network, nodes []Node) *Driver {
	return &Driver{name: name, networks: networks, nodes: nodes, taken: map[int]bool{}}
}

// Kind implements testbed.Provider.
func (d *Driver) Kind() string { return d.name }

// Capabilities implements testbed.Provider.
func (d *Driver) Capabilities() testbed.Capabilities {
	return testbed.Capabilities{Networks: d.networks, PinsCPUs: true, BuildsLinks: true, OwnsNodes: true}
}

// Supports implements testbed.Provider. All machines are alike: the first one is asked.
func (d *Driver) Supports(ctx context.Context, spec testbed.Spec) error {
	spec.Nodes, spec.PodsPerNode = max(spec.Nodes, len(d.nodes)), max(spec.PodsPerNode, 1)
	if _, _, err := d.plan(spec, spec.Network); err != nil {
		return err
	}
	return d.nodes[0].Machine.Supports(ctx, spec)
}

// plan plans a network for all nodes.
func (d *Driver) plan(spec testbed.Spec, name string) (network.Topology, network.Plan, error) {
	if spec.Nodes > len(d.nodes) {
		return network.Topology{}, network.Plan{}, fmt.Errorf("%d nodes: there are %d machines", spec.Nodes, len(d.nodes))
	}
	t, err := network.NewTopology(network.Layout{
		Nodes: spec.Nodes, PodsPerNode: spec.PodsPerNode, Family: spec.Family, MTU: spec.Link.MTU, Rate: spec.Link.Rate,
		PodsOutlive: spec.PodsOutlive, Conditions: spec.Conditions,
	})
	if err != nil {
		return t, network.Plan{}, err
	}
	n, err := network.Find(d.networks, name)
	if err != nil {
		return t, network.Plan{}, err
	}
	whole, err := n.Plan(t)
	if err != nil {
		return t, network.Plan{}, err
	}
	p, err := whole.Part(network.Everywhere)
	return t, p, err
}

// wire takes one that no other testbed has.
func (d *Driver) wire() (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for k := range d.nodes[0].Cards {
		if !d.taken[k] {
			d.taken[k] = true
			return k, nil
		}
	}
	return 0, fmt.Errorf("all %d wires between the machines are taken: fewer networks can stand side by side", len(d.nodes[0].Cards))
}

func (d *Driver) giveBack(wire int) {
	d.mu.Lock()
	delete(d.taken, wire)
	d.mu.Unlock()
}

// Open implements testbed.Provider.
func (d *Driver) Open(ctx context.Context, spec testbed.Spec) (testbed.Testbed, error) {
	fail := func(err error) (testbed.Testbed, error) {
		return nil, fmt.Errorf("join %d machines: %w", spec.Nodes, err)
	}
	t, p, err := d.plan(spec, spec.Network)
	if err != nil {
		return fail(err)
	}
	spec.Link.MTU = t.MTU
	wire, err := d.wire()
	if err != nil {
		return fail(err)
	}
	l := &Testbed{driver: d, wire: wire, spec: spec, topo: t, plan: p, parts: make([]*remote.Part, spec.Nodes)}
	for j := range t.Pods {
		l.pods = append(l.pods, &pod{bed: l, index: j})
	}
	var group errgroup.Group
	for i := range spec.Nodes {
		group.Go(func() (err error) {
			l.parts[i], err = d.nodes[i].Machine.Open(ctx, spec, lab.NodePart{Node: i, Card: d.nodes[i].Cards[wire]})
			if err != nil {
				return fmt.Errorf("node%d: %w", i, err)
			}
			return nil
		})
	}
	err = group.Wait()
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		l.parts = slices.DeleteFunc(l.parts, func(p *remote.Part) bool { return p == nil })
		return fail(errors.Join(err, l.Close()))
	}
	return l, nil
}
