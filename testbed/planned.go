package testbed

import (
	"context"
	"net/netip"
	"sync/atomic"

	"netdelta/network"
)

// Topology is what the testbed's networks are planned over.
func (s Spec) Topology() (network.Topology, error) {
	return network.NewTopology(network.Layout{
		Nodes: s.Nodes, PodsPerNode: s.PodsPerNode, Family: s.Family, MTU: s.Link.MTU, Rate: s.Link.Rate,
		PodsOutlive: s.PodsOutlive, Conditions: s.Conditions, Segment: s.Segment,
	})
}

// Planned is the part of a testbed that follows from its topology and the plan of its present network. It is safe for concurrent use.
type Planned struct {
	Topology network.Topology
	pods     []Pod
	present  atomic.Pointer[present]
}

type present struct {
	spec Spec
	plan network.Plan
}

// NewPlanned is a testbed without a network yet. The function start carries out the pods' Start, by their numbers.
func NewPlanned(spec Spec, t network.Topology, start func(ctx context.Context, pod int, cmd Command) (Process, error)) *Planned {
	p := &Planned{Topology: t}
	spec.Link.MTU = t.MTU
	p.present.Store(&present{spec: spec})
	for j := range t.Pods {
		p.pods = append(p.pods, &plannedPod{bed: p, index: j, start: start})
	}
	return p
}

// Present says that the testbed has a network from now on.
func (p *Planned) Present(plan network.Plan) {
	spec := p.Spec()
	spec.Network = plan.Network
	p.present.Store(&present{spec, plan})
}

// Spec implements Testbed. Its network is the present one.
func (p *Planned) Spec() Spec { return p.present.Load().spec }

// Plan implements Observer.
func (p *Planned) Plan() network.Plan { return p.present.Load().plan }

// Pods implements Testbed.
func (p *Planned) Pods() []Pod { return append([]Pod(nil), p.pods...) }

// Numbers are the numbers of two pods; ok says that both are of this testbed.
func (p *Planned) Numbers(from, to Pod) (a, b int, ok bool) {
	first, ok1 := from.(*plannedPod)
	second, ok2 := to.(*plannedPod)
	if !ok1 || !ok2 || first.bed != p || second.bed != p {
		return 0, 0, false
	}
	return first.index, second.index, true
}

// Endpoint implements Testbed. For a pod of another testbed it is the zero address.
func (p *Planned) Endpoint(from, to Pod, port uint16) netip.AddrPort {
	a, b, ok := p.Numbers(from, to)
	if !ok {
		return netip.AddrPort{}
	}
	return p.Plan().Endpoint(a, b, port)
}

// Path implements Observer.
func (p *Planned) Path(from, to Pod, protocol network.Protocol) []network.Hop {
	a, b, ok := p.Numbers(from, to)
	if !ok {
		return nil
	}
	return p.Plan().Path(a, b, protocol)
}

// plannedPod is a pod of a planned testbed.
type plannedPod struct {
	bed   *Planned
	index int
	start func(ctx context.Context, pod int, cmd Command) (Process, error)
}

// Name implements Pod.
func (p *plannedPod) Name() string { return p.bed.Topology.Pods[p.index].Name }

// Node implements Pod.
func (p *plannedPod) Node() string {
	return p.bed.Topology.Nodes[p.bed.Topology.Pods[p.index].Node].Name
}

// Address implements Pod. Under host networking it is the node's.
func (p *plannedPod) Address() netip.Addr { return p.bed.Plan().Pods[p.index].Address }

// Ports implements Pod.
func (p *plannedPod) Ports() (first, last uint16) {
	own := p.bed.Topology.Pods[p.index]
	return own.FirstPort, own.LastPort
}

// Start implements Pod.
func (p *plannedPod) Start(ctx context.Context, cmd Command) (Process, error) {
	return p.start(ctx, p.index, cmd)
}
