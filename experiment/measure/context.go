// Package measure sets up builds of cells, side by side or under live swaps, and runs bursts in them. Strategies decide what is set up
// when, and in which order it is measured.
package measure

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"netdelta/agent"
	"netdelta/experiment/endpoint"
	"netdelta/experiment/plan"
	"netdelta/network"
	"netdelta/probe/cpu"
	"netdelta/probe/pressure"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/unit"
	"netdelta/workload"
)

// Config says with what cells are measured.
type Config struct {
	// Testbed is every testbed's, except for its network.
	Testbed   testbed.Spec
	Driver    testbed.Provider
	Workloads []workload.Workload
	Program   agent.Program
	// Changes are the networks that need a change of the cluster under the testbeds.
	Changes []testbed.Change
	// Asked leaves out of parameters what the cluster has by its state; nil leaves all.
	Asked func(result.Params) result.Params
	// Password is for targets that take one.
	Password workload.Secret
	// Burst is the length of a burst; workloads that need longer ones have them. VisitBursts is the number of bursts in each visit
	// to a network under live swaps, 0 for as many as are worth the swap.
	Burst       time.Duration
	VisitBursts int
	// Measuring are the processors to pin workloads to; none where they are not this program's to give.
	Measuring []int
	// Pins are the processors of both ends, each on its own machine, where the study names them; nil goes by Measuring.
	Pins *result.Pins
	// Machine watches this machine; nil where the pods run on others, which their agents then watch. The caller closes it and Kernel.
	Machine *pressure.Reader
	Kernel  *cpu.Kernel
}

// Context is what all builds of a run share.
type Context struct {
	Config
	Health   *endpoint.Health
	Targets  *endpoint.Targets
	Observed *Observed

	seed  uint64
	able  testbed.Capabilities
	ports map[result.Setting]endpoint.Ports // of a cell: portsOf
	// shares are what bursts of each cell usually get of their processor, over all builds: a load that begins in the middle of a run
	// must not become what a later build takes for usual.
	shares map[string]*pressure.Share
	// ownPods are the networks that need their own pods, so that they can't be swapped in under others.
	ownPods map[string]bool
	// chosen are the networks of this machine's or a node's own namespace, where ports may be taken, so that the kernel chooses the clients'.
	chosen map[string]bool
	kept   keptTestbeds
}

// NewContext prepares to measure the cells of a run. All random orders follow from its seed.
func NewContext(c Config, run result.Run) *Context {
	m := &Context{
		Config: c, Health: endpoint.NewHealth(), Observed: newObserved(), seed: run.Seed,
		able: c.Driver.Capabilities(), ports: assignPorts(run.Cells, c.Workloads), shares: map[string]*pressure.Share{}, ownPods: map[string]bool{}, chosen: map[string]bool{},
	}
	m.Targets = &endpoint.Targets{
		Driver: c.Driver, Program: c.Program, Password: c.Password, Health: m.Health,
		Within: func(cell result.Cell) time.Duration { return DemandOf(c.Workloads, cell).Put.Within },
	}
	for _, cell := range run.Cells {
		m.shares[cell.ID] = &pressure.Share{}
	}
	for _, c := range run.Cells {
		if n, err := network.Find(m.able.Networks, c.Network); err == nil { // a cluster's own networks are not of the catalogue
			m.ownPods[c.Network], m.chosen[c.Network] = n.OwnPods, n.SharesPorts
		}
	}
	return m
}

// LosesNodes says that nodes may be lost, and be there again in the next build.
func (m *Context) LosesNodes() bool { return m.able.LosesNodes || !m.able.OwnsNodes }

// OwnsNodes says that nodes are made for the testbed; else pods are scheduled, started and lost at any time.
func (m *Context) OwnsNodes() bool { return m.able.OwnsNodes }

// Client ports lie below the ports of the pods' servers.
const (
	firstClientPort = 2048
	lastClientPort  = 19999
)

// assignPorts gives each setting of the cells its ports.
func assignPorts(cells []result.Cell, workloads []workload.Workload) map[result.Setting]endpoint.Ports {
	assigned := map[result.Setting]endpoint.Ports{}
	next := firstClientPort
	for i, s := range result.Settings(cells) {
		uses := 1
		if w := workload.Find(workloads, s.Workload); w.SourcePorts != nil {
			uses = w.SourcePorts(s.Params)
		}
		if next+uses-1 > lastClientPort {
			assigned[s] = endpoint.Ports{Server: i} // with thousands of connections the kernel chooses
			continue
		}
		assigned[s] = endpoint.Ports{Server: i, Client: next}
		next += uses
	}
	return assigned
}

// portsOf are the ports of a cell's ends.
func (m *Context) portsOf(c result.Cell) endpoint.Ports {
	p := m.ports[c.Setting()]
	if m.chosen[c.Network] || !m.able.OwnsNodes {
		p.Client = 0
	}
	return p
}

// Group is the cells that share a testbed: of one network, role and underlay. The baseline's A/A control has its own testbed.
type Group struct {
	GroupKey
	Cells []result.Cell
}

// GroupKey identifies a group.
type GroupKey struct {
	Network string
	control bool
	Underlay
}

// Underlay is what cells require of a testbed in addition to the network.
type Underlay struct {
	mtu        unit.Bytes // of the links between nodes, 0 for the study's
	family     result.Family
	conditions result.Conditions
	target     string // the host of an external target, "" for a server of netdelta's
	class      string // the storage class of a volume, "" for none
}

// GroupOf is the group of a cell.
func GroupOf(c result.Cell) GroupKey {
	u := Underlay{c.Params.MTU, c.Params.Family, c.Params.Conditions, TargetHost(c.Params), c.Params.StorageClass}
	return GroupKey{c.Network, c.Role == result.RoleControl, u}
}

// TargetHost is the host of a cell's external target, "" without one.
func TargetHost(p result.Params) string {
	if p.Target == "" {
		return ""
	}
	t, err := workload.ParseTarget(p.Target)
	if err != nil {
		return "" // it has been checked with the study
	}
	return t.Host
}

// Groups sorts cells by the testbed that they share, in the random order in which a build creates or visits them. The order is drawn
// anew for each build, so that it can't favour a network over all builds.
func (m *Context) Groups(build int, cells []result.Cell) []Group {
	var groups []Group
	for _, c := range cells {
		key := GroupOf(c)
		i := slices.IndexFunc(groups, func(g Group) bool { return g.GroupKey == key })
		if i < 0 {
			i, groups = len(groups), append(groups, Group{GroupKey: key})
		}
		groups[i].Cells = append(groups[i].Cells, c)
	}
	rng := rand.New(rand.NewPCG(m.seed, uint64(build)))
	rng.Shuffle(len(groups), func(i, j int) { groups[i], groups[j] = groups[j], groups[i] })
	return groups
}

// Open opens the testbed of a group.
func (m *Context) Open(ctx context.Context, g Group) (testbed.Testbed, error) {
	tb, err := m.Driver.Open(ctx, m.spec(g))
	if err != nil {
		return nil, fmt.Errorf("building network %s: %w", g.Network, err)
	}
	return tb, nil
}

// spec is the testbed that a group needs.
func (m *Context) spec(g Group) testbed.Spec {
	spec := m.Testbed
	spec.Network, spec.Expect = NetworkUsed(m.Changes, g.Network)
	asked := result.Params{MTU: g.mtu, Conditions: g.conditions}
	if m.Asked != nil {
		asked = m.Asked(asked)
	}
	spec.Family, spec.Conditions, spec.Target = g.family, asked.Conditions, g.target
	if asked.MTU != 0 {
		spec.Link.MTU = asked.MTU
	} else {
		spec.ExpectMTU = g.mtu // the cluster is changed to it
	}
	switch {
	case g.class != "": // clients alone, since there is no server
		v := testbed.Volume{Class: g.class, Clients: 1}
		for _, c := range g.Cells {
			d := m.demand(c)
			v.Size, v.Clients = max(v.Size, d.Volume), max(v.Clients, d.Clients)
		}
		spec.Nodes, spec.PodsPerNode, spec.Volume, spec.Peers = v.Clients, 1, v, testbed.Peers{}
	case m.able.PinsCPUs && hasNeighbour(g.conditions):
		return withNeighbour(spec)
	}
	return spec
}

// TryVolumes makes a volume of each storage class and opens a client in it, so that one that can't be had is reported before anything
// is measured.
func (m *Context) TryVolumes(ctx context.Context, cells []result.Cell) error {
	var try []result.Cell // of each class the one with most clients
	for _, c := range plan.Measured(cells) {
		at := slices.IndexFunc(try, func(t result.Cell) bool { return t.Params.StorageClass == c.Params.StorageClass })
		switch {
		case c.Params.StorageClass == "":
		case at < 0:
			try = append(try, c)
		case m.demand(c).Clients > m.demand(try[at]).Clients:
			try[at] = c
		}
	}
	for _, c := range try {
		b := &Build{}
		s := m.openGroup(ctx, b, Group{GroupOf(c), []result.Cell{c}})[0]
		if s.Failed == nil {
			s.Close(ctx)
		}
		if err := errors.Join(s.Failed, s.closeProbes(), b.Close()); err != nil {
			return fmt.Errorf("before anything was measured: a volume of storage class %s: %w", c.Params.StorageClass, err)
		}
	}
	return nil
}

// NetworkUsed is the testbed's network by which servers are reached on a network of the study, and how its packets must be seen.
func NetworkUsed(changes []testbed.Change, network string) (uses string, expect testbed.Encapsulation) {
	for _, c := range changes {
		if c.Network == network {
			return c.Uses, c.Expect
		}
	}
	return network, ""
}

// DemandOf is what a cell needs in addition to netdelta itself.
func DemandOf(workloads []workload.Workload, c result.Cell) workload.Demand {
	return workload.Find(workloads, c.Workload).Demands(c.Params)
}

func (m *Context) demand(c result.Cell) workload.Demand { return DemandOf(m.Workloads, c) }

// Clustered says whether a cell is served by a cluster.
func (m *Context) Clustered(c result.Cell) bool { return m.demand(c).Cluster != nil }

// StartsPrograms says whether cells have servers with programs.
func (m *Context) StartsPrograms(cells []result.Cell) bool {
	return slices.ContainsFunc(cells, func(c result.Cell) bool { return len(m.demand(c).Programs) > 0 })
}

// VisitCost is what a cell costs in a visit to a network under live swaps, as guessed.
func (m *Context) VisitCost(c result.Cell) time.Duration {
	return VisitCost(m.Burst, m.VisitBursts, m.demand(c))
}
