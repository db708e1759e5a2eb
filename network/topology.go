package network

import (
	"errors"
	"fmt"
	"iter"
	"net/netip"

	"netdelta/result"
	"netdelta/unit"
)

// Limits of a topology. Node and pod numbers are bytes of an address; each pod has a thousand ports from 20000 up.
const (
	MaxNodes       = 250
	MaxPodsPerNode = 45
	// DefaultMTU is Ethernet's.
	DefaultMTU unit.Bytes = 1500
	// MaxMTU is the largest that Linux gives to a veth device.
	MaxMTU unit.Bytes = 65535
)

const (
	firstPort   = 20000
	portsPerPod = 1000
)

// Topology is what a network is planned over: the nodes with their underlay, and the pods on them.
type Topology struct {
	// Family is the family of all addresses, of pods and underlay alike; "" is IPv4.
	Family result.Family
	Nodes  []Node
	Pods   []Pod
	// MTU of the underlay links.
	MTU unit.Bytes
	// Rate limits each direction of each underlay link; zero is unlimited.
	Rate unit.BitsPerSecond
	// PodsOutlive says that pods have namespaces of their own that outlive the network (live swap). Without it a network
	// may place a pod in its node's namespace, as host networking does.
	PodsOutlive bool
	// Conditions are what the network is built under; they are plain. Their link rate, where given, holds in place of Rate.
	Conditions result.Conditions
	// Segment is as in Layout.
	Segment uint8

	outer *Topology // around an encryption, where this one is inside it
}

// Node is a host of the topology.
type Node struct {
	Name string
	// Device is the node's underlay device, Address its address there, with the underlay's prefix length.
	Device  string
	Address netip.Prefix
	// PodPrefix holds the addresses of this node's pods.
	PodPrefix netip.Prefix
}

// Gateway is the address that a node has among its pods: the first of its pod prefix.
func (n Node) Gateway() netip.Addr { return n.PodPrefix.Masked().Addr().Next() }

// Pod is an endpoint with a fixed address on one node.
type Pod struct {
	Name    string
	Node    int // index into Topology.Nodes
	Address netip.Addr
	// FirstPort and LastPort are the range of ports on which servers of this pod listen; no two pods of a node share one,
	// so that a network may publish them on the node's address unchanged.
	FirstPort, LastPort uint16
}

// Layout is what NewTopology lays out.
type Layout struct {
	Nodes       int           // 1 to MaxNodes
	PodsPerNode int           // 1 to MaxPodsPerNode
	Family      result.Family // "" is IPv4
	// MTU and Rate are the underlay links': a zero MTU is DefaultMTU, a zero rate unlimited.
	MTU  unit.Bytes
	Rate unit.BitsPerSecond
	// PodsOutlive and Conditions are as in Topology.
	PodsOutlive bool
	Conditions  result.Conditions
	// Segment numbers underlays that share a link: each has ports and addresses of its own. 0 is an underlay that has its link to
	// itself, and 1 is taken: nodes have such addresses inside an encryption.
	Segment uint8
}

// NewTopology lays out nodes with the same number of pods each, with addresses from the ranges that are set aside for
// benchmarks. In IPv4's (RFC 2544) node i, from 0, has 198.18.0.(i+1) and its pods 198.19.i.10 and up; in
// IPv6's (RFC 5180) node i has 2001:2::(i+1) and its pods 2001:2:0:(100+i)::10 and up, in hexadecimal digits. Pods are
// numbered through, node by node.
func NewTopology(l Layout) (Topology, error) {
	if err := knownFamily(l.Family); err != nil {
		return Topology{}, err
	}
	if l.Nodes < 1 || l.Nodes > MaxNodes {
		return Topology{}, fmt.Errorf("%d nodes: need 1 to %d", l.Nodes, MaxNodes)
	}
	if l.PodsPerNode < 1 || l.PodsPerNode > MaxPodsPerNode {
		return Topology{}, fmt.Errorf("%d pods on each node: need 1 to %d", l.PodsPerNode, MaxPodsPerNode)
	}
	if l.Segment == innerSegment {
		return Topology{}, fmt.Errorf("segment %d holds the addresses inside an encryption: take another", l.Segment)
	}
	if l.MTU == 0 {
		l.MTU = DefaultMTU
	}
	t := Topology{Family: l.Family, MTU: l.MTU, Rate: l.Rate, PodsOutlive: l.PodsOutlive, Conditions: l.Conditions.Plain(), Segment: l.Segment}
	if t.Conditions.LinkRate > 0 {
		t.Rate = t.Conditions.LinkRate
	}
	for i := range l.Nodes {
		t.Nodes = append(t.Nodes, Node{
			Name: fmt.Sprintf("node%d", i), Device: "eth0", Address: nodeAddress(l.Family, l.Segment, i), PodPrefix: podPrefix(l.Family, i),
		})
		for k := range l.PodsPerNode {
			t.Pods = append(t.Pods, Pod{
				Name:      fmt.Sprintf("pod%d", len(t.Pods)),
				Node:      i,
				Address:   podAddress(l.Family, i, k),
				FirstPort: uint16(firstPort + portsPerPod*k),
				LastPort:  uint16(firstPort + portsPerPod*(k+1) - 1),
			})
		}
	}
	return t, t.Check()
}

// Check tells what is wrong with a topology that did not come from NewTopology.
func (t Topology) Check() error {
	if err := knownFamily(t.Family); err != nil {
		return err
	}
	if len(t.Nodes) == 0 || len(t.Pods) == 0 {
		return errors.New("a topology needs a node and a pod")
	}
	if least := leastMTU(t.Family); t.MTU < least || t.MTU > MaxMTU {
		return fmt.Errorf("an MTU of %d: need %d to %d for %s", int64(t.MTU), int64(least), int64(MaxMTU), familyName(t.Family))
	}
	if t.Rate < 0 {
		return fmt.Errorf("a link rate of %d bit/s: need 0 (unlimited) or more", int64(t.Rate))
	}
	if err := checkLinks(t.Conditions); err != nil {
		return err
	}
	for _, n := range t.Nodes {
		if !n.Address.IsValid() || !n.PodPrefix.IsValid() || n.Device == "" {
			return fmt.Errorf("node %q needs a device, an address and a prefix for its pods", n.Name)
		}
		if !inFamily(t.Family, n.Address.Addr()) || !inFamily(t.Family, n.PodPrefix.Addr()) {
			return fmt.Errorf("node %q: %s and %s must both be %s, as the topology is", n.Name, n.Address, n.PodPrefix, familyName(t.Family))
		}
	}
	for _, p := range t.Pods {
		if p.Node < 0 || p.Node >= len(t.Nodes) {
			return fmt.Errorf("pod %q is on node %d of %d", p.Name, p.Node, len(t.Nodes))
		}
		if !t.Nodes[p.Node].PodPrefix.Contains(p.Address) {
			return fmt.Errorf("pod %q: address %s is outside %s, the range of its node", p.Name, p.Address, t.Nodes[p.Node].PodPrefix)
		}
	}
	return nil
}

// podsOf yields the indices of a node's pods.
func (t Topology) podsOf(node int) []int {
	var pods []int
	for j, p := range t.Pods {
		if p.Node == node {
			pods = append(pods, j)
		}
	}
	return pods
}

// others yields all nodes but one, with their numbers.
func (t Topology) others(node int) iter.Seq2[int, Node] {
	return func(yield func(int, Node) bool) {
		for k, n := range t.Nodes {
			if k != node && !yield(k, n) {
				return
			}
		}
	}
}
