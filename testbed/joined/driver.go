package joined

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"

	"golang.org/x/sync/errgroup"

	"netdelta/internal/gather"
	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/lab"
	"netdelta/unit"
)

// Node is a machine that a node is on.
type Node struct {
	Machine *Machine
	// Wires lead to the other nodes. Each testbed takes one, the same one everywhere. A wire is a network card, by its address or its name, or
	// several, which can be a bond: it takes as many of them, from the first on, as it has links.
	Wires [][]string
	// Own is the machine's own network, for networks of nodes as they are found; nil where it can't be used.
	Own *Own
	// Hosts are the names and addresses by which others know the machine: endpoints with these stand on it.
	Hosts []string
}

// Driver opens testbeds whose nodes are machines. It is safe for concurrent use.
type Driver struct {
	name     string
	networks []network.Network
	nodes    []Node
	shared   Shared

	mu        sync.Mutex   // guards the nodes' machines, too
	taken     map[int]bool // which wires
	listening map[int]bool // which numbers of takePorts
}

var _ testbed.Provider = (*Driver)(nil)

// NewDriver is a driver of that name for the given machines. A single one has all nodes, joined as in a lab there: it needs no cards.
func NewDriver(name string, networks []network.Network, nodes []Node) *Driver {
	return &Driver{name: name, networks: networks, nodes: nodes, taken: map[int]bool{}, listening: map[int]bool{}}
}

// Shared says what testbeds keep to whose wires lead to one link. The zero value has wires that are links of their own.
type Shared struct {
	// First is the segment that the first wire stands for; the others follow.
	First uint8
	// OneMAC says that packets reach a node only by the node's own address, since its wires have one MAC address.
	OneMAC bool
	// Addresses are the nodes' own, by wire, then by node; nil takes them from the wires' segments.
	Addresses [][]netip.Prefix
	// MTU is the largest that wires can have over the machines' cards, in bytes; 0 where it is not known.
	MTU unit.Bytes
}

// ShareLink says that all wires lead to one link. Pods whose frames would be on that link themselves are refused: it takes the nodes' own
// alone. It is called before the first testbed is opened.
func (d *Driver) ShareLink(s Shared) { d.shared = s }

// Replace has another machine be a node from now on: the same one, reached again after it was lost. Testbeds that are open stay lost.
func (d *Driver) Replace(node int, m *Machine) {
	d.mu.Lock()
	d.nodes[node].Machine = m
	d.mu.Unlock()
}

// machine is the one that a node is on now.
func (d *Driver) machine(node int) *Machine {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.nodes[node].Machine
}

// Kind implements testbed.Provider.
func (d *Driver) Kind() string { return d.name }

// Capabilities implements testbed.Provider.
func (d *Driver) Capabilities() testbed.Capabilities {
	return testbed.Capabilities{Networks: d.networks, PinsCPUs: true, BuildsLinks: true, OwnsNodes: true, Lacking: d.lacking}
}

// lacking are the programs, of the given names, that some machine does not have.
func (d *Driver) lacking(ctx context.Context, names []string) (missing []string, err error) {
	for i := range d.nodes {
		found, err := ask[[]string](ctx, d.machine(i), opLacking, names)
		if err != nil {
			return nil, fmt.Errorf("look for programs on node%d: %w", i, err)
		}
		for _, name := range found {
			missing = gather.Once(missing, name)
		}
	}
	return missing, nil
}

// Supports implements testbed.Provider: all machines are asked.
func (d *Driver) Supports(ctx context.Context, spec testbed.Spec) error {
	least := 2
	if spec.Network == network.Metal { // no machine is two nodes of its own network
		least = min(least, len(d.nodes))
	}
	spec.Nodes, spec.PodsPerNode = max(spec.Nodes, least), max(spec.PodsPerNode, 1)
	if err := d.serves(spec); err != nil {
		return err
	}
	if _, _, err := d.plan(spec, spec.Network); err != nil {
		return err
	}
	refused := make([]error, len(d.nodes))
	var group sync.WaitGroup
	for i := range d.nodes {
		group.Go(func() { _, refused[i] = ask[any](ctx, d.machine(i), opSupports, spec) })
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
	if err := d.reaches(spec, name); err != nil {
		return network.Topology{}, network.Plan{}, err
	}
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
	if d.shared.Addresses != nil && name != network.Metal && !d.whole() {
		if err := d.address(spec, &t); err != nil {
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
	if most := d.shared.MTU; most != 0 && t.MTU > most && !whole.Found {
		return t, network.Plan{}, &network.NotPossibleError{
			Network: name, Condition: fmt.Sprintf("mtu=%d", t.MTU), Why: fmt.Sprintf("the machines' cards have an MTU of %d, and stay as they are", most),
		}
	}
	if err := d.shared.takes(n, whole); err != nil {
		return t, network.Plan{}, err
	}
	p, err := whole.Part(network.Everywhere)
	if err == nil {
		err = d.linked(p)
	}
	return t, p, err
}

// linked refuses a plan whose nodes are to have bonds of more links than their wires have cards.
func (d *Driver) linked(p network.Plan) error {
	for _, u := range network.Of[network.Uplink](p.Underlay) {
		if cards := len(d.nodes[u.In.Index].Wires[0]); u.Number >= cards {
			return &network.NotPossibleError{
				Network: p.Network, Condition: fmt.Sprintf("a bond of %d links", u.Number+1),
				Why: fmt.Sprintf("node%d is joined by %d: where nodes are servers, --nic take:eth2+eth3 names several cards", u.In.Index, cards),
			}
		}
	}
	return nil
}

// address gives nodes the addresses that were given for a testbed's wire: the one of its segment.
func (d *Driver) address(spec testbed.Spec, t *network.Topology) error {
	wire := 0
	if spec.Segment != 0 {
		wire = int(spec.Segment - d.shared.First)
	}
	for i := range t.Nodes {
		a := d.shared.Addresses[wire][d.at(spec.Target, i)]
		if a.Addr().Is6() != (spec.Family == result.IPv6) {
			return &network.NotPossibleError{
				Network: spec.Network, Condition: "family=" + string(cmp.Or(spec.Family, result.IPv4)), Why: fmt.Sprintf("the nodes were given addresses like %s", a),
			}
		}
		t.Nodes[i].Address = a
	}
	return nil
}

// takes refuses a network whose packets would be on the shared link under other addresses than the nodes'.
func (s Shared) takes(n network.Network, p network.Plan) error {
	byPods := (n.Crossing == network.CrossByRoute || n.Crossing == network.CrossPastStack) && p.Encryption.Kind == ""
	why := ""
	switch {
	case s.First == 0:
	case n.Crossing == network.CrossOnLink:
		why = "its pods' own frames would be on that link, which takes frames of the nodes alone"
	case s.OneMAC && byPods:
		why = "its pods' own addresses would be on that link, where packets find an ipvlan device by the node's address alone: macvlan devices can have it"
	}
	if why == "" {
		return nil
	}
	return &network.NotPossibleError{Network: n.Name, Condition: "nodes that share a link", Why: why}
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
	for k := range d.nodes[0].Wires {
		if !d.taken[k] {
			d.taken[k] = true
			return k, nil
		}
	}
	return 0, fmt.Errorf("all %d wires between the machines are taken: fewer networks can stand side by side, the baseline among them twice", len(d.nodes[0].Wires))
}

func (d *Driver) giveBack(wire int) {
	d.mu.Lock()
	delete(d.taken, wire)
	d.mu.Unlock()
}

// order is what the machine of a node is asked to build.
func (d *Driver) order(spec testbed.Spec, t network.Topology, p network.Plan, node, wire int) openArgs {
	switch {
	case p.Found:
		return openArgs{Spec: spec, Part: lab.NodePart{Node: node, Nodes: t.Nodes, Pods: t.Pods}}
	case d.whole():
		return openArgs{Spec: spec, Whole: true}
	}
	part := lab.NodePart{Node: node, Cards: d.nodes[d.at(spec.Target, node)].Wires[wire]}
	if d.shared.Addresses != nil {
		part.Nodes, part.Pods = t.Nodes, t.Pods
	}
	return openArgs{Spec: spec, Part: part}
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
	if d.shared.First != 0 && wire != noWire {
		spec.Segment = d.shared.First + uint8(wire)
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
			at := d.at(spec.Target, i)
			m := d.machine(at)
			parts[i].machine = m
			// Not canceled with ctx: then the part would never be closed.
			parts[i].lab, err = ask[int](context.WithoutCancel(ctx), m, opOpen, d.order(l.Spec(), t, p, i, wire))
			if err != nil {
				return fmt.Errorf("node%d: %w", at, err)
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
