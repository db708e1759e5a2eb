package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"netdelta/internal/machine"
	"netdelta/internal/netns"
	"netdelta/network"
	"netdelta/testbed"
)

// Driver opens labs. It is safe for concurrent use.
type Driver struct {
	networks []network.Network
	labs     atomic.Uint64 // opened so far, to tell their processes apart
	made     int64         // when, in nanoseconds: it tells the labs of one driver from other drivers' labs

	mu    sync.Mutex
	tried map[network.Need]error

	cards   cards
	allowed []int // the processors that this program might use when the driver was made
}

// NodePart says which part of a testbed a lab builds: one node, on a machine that is joined to the machines of the other nodes.
type NodePart struct {
	Node int
	// Cards are the names of the network cards of this machine that lead to the others: one, or as many as its bond has links. The lab
	// takes them, and gives them back.
	Cards []string `json:"cards,omitempty"`
	// Nodes are all nodes with the pods on them, where their addresses are given; else the spec's hold. Own is this node's own
	// namespace where nodes are used as they are found: nothing is changed there.
	Nodes []network.Node   `json:"nodes,omitempty"`
	Pods  []network.Pod    `json:"pods,omitempty"`
	Own   *netns.Namespace `json:"-"`
}

// NewDriver is a driver for the given catalogue of networks.
func NewDriver(networks []network.Network) *Driver {
	allowed, err := machine.AllowedCPUs()
	if err != nil {
		allowed = nil // processes of networks then run where this program does
	}
	return &Driver{networks: networks, tried: map[network.Need]error{}, allowed: allowed, made: time.Now().UnixNano()}
}

var _ testbed.Provider = (*Driver)(nil)

// Kind implements testbed.Provider.
func (d *Driver) Kind() string { return "lab" }

// Capabilities implements testbed.Provider.
func (d *Driver) Capabilities() testbed.Capabilities {
	return testbed.Capabilities{
		Networks: d.networks, Usual: []string{"host", "bridge"}, SharesMachine: true, PinsCPUs: true, BuildsLinks: true, OwnsNodes: true,
	}
}

// Supports implements testbed.Provider: it tries for real, in a namespace made for the purpose, each kind of link that the
// network uses. The answers are kept for the life of the driver.
func (d *Driver) Supports(ctx context.Context, spec testbed.Spec) error {
	spec.Nodes, spec.PodsPerNode, spec.Link.MTU = 2, 2, 0
	t, err := spec.Topology()
	if err != nil {
		return err
	}
	_, err = d.plan(ctx, spec.Network, t)
	if u := (*testbed.UnsupportedError)(nil); spec.Peers.Count > 0 && errors.As(err, &u) {
		fix := cmp.Or(u.Fix, "run it on a machine whose kernel has them: the guest has no database and no Ceph")
		return &testbed.UnsupportedError{Feature: u.Feature, Need: u.Need, Fix: fix}
	}
	return err
}

// supportsPlan tells what the kernel or the machine lacks for a plan.
func (d *Driver) supportsPlan(ctx context.Context, p network.Plan) error {
	if err := d.supportsNeeds(ctx, p.Network, p.Needs()); err != nil {
		return err
	}
	if err := d.supportsCards(p); err != nil {
		return err
	}
	needs, err := pluginNeeds(p)
	if err != nil {
		return err
	}
	return d.supportsNeeds(ctx, p.Network, needs)
}

// supportsNeeds tells what the kernel lacks of what a network needs.
func (d *Driver) supportsNeeds(ctx context.Context, name string, needs []network.Need) error {
	for _, need := range needs {
		err := ctx.Err()
		if err == nil {
			err = d.supportsNeed(need)
		}
		if u := unsupported("network "+name, need, err); u != nil {
			return u
		}
		if err != nil {
			return fmt.Errorf("find out whether network %s is supported: %w", name, err)
		}
	}
	return nil
}

// supportsNeed asks the kernel, once.
func (d *Driver) supportsNeed(need network.Need) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	err, known := d.tried[need]
	if !known {
		err = try(need)
		if err == nil || errors.Is(err, errMissing) || errors.Is(err, testbed.ErrUnsupported) {
			d.tried[need] = err
		}
	}
	return err
}

// Open implements testbed.Provider. If ctx ends meanwhile, nothing is left of the lab.
func (d *Driver) Open(ctx context.Context, spec testbed.Spec) (testbed.Testbed, error) {
	l, err := d.open(ctx, spec, nil)
	if err != nil {
		return nil, fmt.Errorf("open a lab: %w", err)
	}
	return l, nil
}

// OpenPart builds the part of a testbed that concerns one node. All pods are in its list; pods of other nodes have no namespace
// here.
func (d *Driver) OpenPart(ctx context.Context, spec testbed.Spec, part NodePart) (*Testbed, error) {
	l, err := d.open(ctx, spec, &part)
	if err != nil {
		return nil, fmt.Errorf("open a part of a lab: %w", err)
	}
	return l, nil
}

// open builds a lab, or a part of one.
func (d *Driver) open(ctx context.Context, spec testbed.Spec, part *NodePart) (*Testbed, error) {
	t, err := spec.Topology()
	if err != nil {
		return nil, err
	}
	if part != nil && part.Nodes != nil {
		t.Nodes, t.Pods = part.Nodes, part.Pods
	}
	l, err := newTestbed(d, spec, t)
	if err != nil {
		return nil, err
	}
	l.part = part
	if part != nil && part.Own != nil {
		if err := l.adopt(part); err != nil {
			return nil, errors.Join(err, l.Close())
		}
	}
	if err := l.build(ctx, spec.Network); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// plan finds a network and plans it.
func (d *Driver) plan(ctx context.Context, name string, t network.Topology) (network.Plan, error) {
	n, err := network.Find(d.networks, name)
	if err != nil {
		return network.Plan{}, err
	}
	p, err := n.Plan(t)
	if err != nil {
		return network.Plan{}, err
	}
	return p, d.supportsPlan(ctx, p)
}
