package joined

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"

	"netdelta/network"
	"netdelta/testbed"
	"netdelta/testbed/lab"
)

// Node is a machine that a node is on.
type Node struct {
	Machine *Machine
	// Cards are the addresses of its network cards that lead to the other nodes. Each testbed takes one, the same one everywhere: the
	// first of all nodes are on one wire, the second on another.
	Cards []string
	// Own is the machine's own network, for networks of nodes as they are found; nil where it can't be used.
	Own *Own
}

// Driver opens testbeds whose nodes are machines. It is safe for concurrent use.
type Driver struct {
	name     string
	networks []network.Network
	nodes    []Node
	first    uint8 // the first wire's segment; 0 where each wire is a link of its own

	mu        sync.Mutex
	taken     map[int]bool // which wires
	listening map[int]bool // which numbers of takePorts
}

var _ testbed.Provider = (*Driver)(nil)

// NewDriver is a driver of that name for the given machines. A single one has all nodes, joined as in a lab there: it needs no cards.
func NewDriver(name string, networks []network.Network, nodes []Node) *Driver {
	return &Driver{name: name, networks: networks, nodes: nodes, taken: map[int]bool{}, listening: map[int]bool{}}
}

// ShareLink says that all wires lead to one link, where each stands for a segment of its own, numbered from the first one up. Pods whose
// frames would be on that link themselves are refused: it takes the nodes' own alone. It is called before the first testbed is opened.
func (d *Driver) ShareLink(first uint8) { d.first = first }

// Kind implements testbed.Provider.
func (d *Driver) Kind() string { return d.name }

// Capabilities implements testbed.Provider.
func (d *Driver) Capabilities() testbed.Capabilities {
	return testbed.Capabilities{Networks: d.networks, PinsCPUs: true, BuildsLinks: true, OwnsNodes: true}
}

// Supports implements testbed.Provider: all machines are asked.
func (d *Driver) Supports(ctx context.Context, spec testbed.Spec) error {
	least := 2
	if spec.Network == network.Metal { // no machine is two nodes of its own network
		least = min(least, len(d.nodes))
	}
	spec.Nodes, spec.PodsPerNode = max(spec.Nodes, least), max(spec.PodsPerNode, 1)
	if _, _, err := d.plan(spec, spec.Network); err != nil {
		return err
	}
	refused := make([]error, len(d.nodes))
	var group sync.WaitGroup
	for i, n := range d.nodes {
		group.Go(func() { _, refused[i] = ask[any](ctx, n.Machine, opSupports, spec) })
	}
	group.Wait()
	for i, err := range refused {
		if err != nil {
			return fmt.Errorf("node%d: %w", i, err)
		}
	}
	return nil
}

// whole says that one machine has all nodes.
func (d *Driver) whole() bool { return len(d.nodes) == 1 }

// plan plans a network for all nodes.
func (d *Driver) plan(spec testbed.Spec, name string) (network.Topology, network.Plan, error) {
	if spec.Nodes > len(d.nodes) && !d.whole() {
		return network.Topology{}, network.Plan{}, fmt.Errorf("%d nodes: there are %d machines", spec.Nodes, len(d.nodes))
	}
	t, err := spec.Topology()
	if err != nil {
		return t, network.Plan{}, err
	}
	n, err := network.Find(d.networks, name)
	if err != nil {
		return t, network.Plan{}, err
	}
	if name == network.Metal {
		if err := d.found(spec, &t); err != nil {
			return t, network.Plan{}, err
		}
	}
	whole, err := n.Plan(t)
	if err != nil {
		return t, network.Plan{}, err
	}
	if d.whole() {
		return t, whole, nil
	}
	if d.first != 0 && n.Crossing == network.CrossOnLink {
		return t, network.Plan{}, &network.NotPossibleError{
			Network: name, Condition: "nodes that share a link", Why: "its pods' own frames would be on that link, which takes frames of the nodes alone",
		}
	}
	p, err := whole.Part(network.Everywhere)
	return t, p, err
}

// noWire is the number of a testbed's wire that needs none.
const noWire = -1

// wire takes one that no other testbed has.
func (d *Driver) wire() (int, error) {
	if d.whole() {
		return noWire, nil // labs share none
	}
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

// order is what a machine is asked to build.
func (d *Driver) order(spec testbed.Spec, t network.Topology, p network.Plan, node, wire int) openArgs {
	switch {
	case p.Found:
		return openArgs{Spec: spec, Part: lab.NodePart{Node: node, Nodes: t.Nodes, Pods: t.Pods}}
	case d.whole():
		return openArgs{Spec: spec, Whole: true}
	}
	return openArgs{Spec: spec, Part: lab.NodePart{Node: node, Card: d.nodes[node].Cards[wire]}}
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
	wire, slot := noWire, 0
	if p.Found {
		slot, err = d.takePorts(&t)
	} else {
		wire, err = d.wire()
	}
	if err != nil {
		return fail(err)
	}
	if d.first != 0 && wire != noWire {
		spec.Segment = d.first + uint8(wire)
		if t, p, err = d.plan(spec, spec.Network); err != nil {
			d.giveBack(wire)
			return fail(err)
		}
	}
	l := &Testbed{driver: d, wire: wire, slot: slot, found: p.Found}
	l.Planned = testbed.NewPlanned(spec, t, l.start)
	parts := make([]part, spec.Nodes)
	if d.whole() {
		parts = parts[:1]
	}
	var group errgroup.Group
	for i := range parts {
		group.Go(func() (err error) {
			m := d.nodes[i].Machine
			parts[i].machine = m
			// Not canceled with ctx: then the part would never be closed.
			parts[i].lab, err = ask[int](context.WithoutCancel(ctx), m, opOpen, d.order(l.Spec(), t, p, i, wire))
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
	l.parts = parts // a lab of number 0, which was not opened, is closed
	if err != nil {
		return fail(errors.Join(err, l.Close()))
	}
	l.Present(p)
	return l, nil
}
