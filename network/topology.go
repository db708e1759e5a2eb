package network

import (
	"errors"
	"fmt"
	"net/netip"

	"netdelta/unit"
)

// Limits of a topology. Node and pod numbers are bytes of an address; each pod has a thousand ports from 20000 up.
const (
	MaxNodes       = 250
	MaxPodsPerNode = 45
	// DefaultMTU is that of Ethernet.
	DefaultMTU unit.Bytes = 1500
	// MaxMTU is the largest that Linux gives to a veth device.
	MaxMTU unit.Bytes = 65535
	// leastMTU4 is the datagram that each IPv4 host must be able to receive whole (RFC 791), leastMTU6 the least MTU of a
	// link that carries IPv6 (RFC 8200).
	leastMTU4 unit.Bytes = 576
	leastMTU6 unit.Bytes = 1280

	firstPort   = 20000
	portsPerPod = 1000
)

// Topology is what a network is planned over: the nodes with their underlay, and the pods on them.
type Topology struct {
	Nodes []Node
	Pods  []Pod
	// MTU of the underlay links.
	MTU unit.Bytes
	// Rate limits each direction of each underlay link; zero is unlimited.
	Rate unit.BitsPerSecond
	// PodsOutlive says that pods have namespaces of their own that outlive the network (live swap). Without it a network
	// may place a pod in its node's namespace, as host networking does.
	PodsOutlive bool
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

// NewTopology lays out nodes with the same number of pods each. Addresses come from the range that RFC 2544 sets aside
// for benchmarks: node i (from 0) has 198.18.0.(i+1), its pods 198.19.i.10 and up. Pods are numbered through, node by node.
// A zero MTU is DefaultMTU.
func NewTopology(nodes, podsPerNode int, mtu unit.Bytes, rate unit.BitsPerSecond, podsOutlive bool) (Topology, error) {
	if nodes < 1 || nodes > MaxNodes {
		return Topology{}, fmt.Errorf("%d nodes: need 1 to %d", nodes, MaxNodes)
	}
	if podsPerNode < 1 || podsPerNode > MaxPodsPerNode {
		return Topology{}, fmt.Errorf("%d pods on each node: need 1 to %d", podsPerNode, MaxPodsPerNode)
	}
	if mtu == 0 {
		mtu = DefaultMTU
	}
	t := Topology{MTU: mtu, Rate: rate, PodsOutlive: podsOutlive}
	for i := range nodes {
		t.Nodes = append(t.Nodes, Node{
			Name:      fmt.Sprintf("node%d", i),
			Device:    "eth0",
			Address:   netip.PrefixFrom(netip.AddrFrom4([4]byte{198, 18, 0, byte(i + 1)}), 24),
			PodPrefix: netip.PrefixFrom(netip.AddrFrom4([4]byte{198, 19, byte(i), 0}), 24),
		})
		for k := range podsPerNode {
			t.Pods = append(t.Pods, Pod{
				Name:      fmt.Sprintf("pod%d", len(t.Pods)),
				Node:      i,
				Address:   netip.AddrFrom4([4]byte{198, 19, byte(i), byte(10 + k)}),
				FirstPort: uint16(firstPort + portsPerPod*k),
				LastPort:  uint16(firstPort + portsPerPod*(k+1) - 1),
			})
		}
	}
	return t, t.Check()
}

// podBits is the prefix length of the range that holds the pods of all nodes.
const podBits = 16

// Check tells what is wrong with a topology that did not come from NewTopology.
func (t Topology) Check() error {
	if len(t.Nodes) == 0 || len(t.Pods) == 0 {
		return errors.New("a topology needs a node and a pod")
	}
	if t.MTU < leastMTU4 || t.MTU > MaxMTU {
		return fmt.Errorf("an MTU of %d: need %d to %d", int64(t.MTU), int64(leastMTU4), int64(MaxMTU))
	}
	if t.Rate < 0 {
		return fmt.Errorf("a link rate of %d bit/s: need 0 (unlimited) or more", int64(t.Rate))
	}
	for _, n := range t.Nodes {
		if !n.Address.IsValid() || !n.PodPrefix.IsValid() || n.Device == "" {
			return fmt.Errorf("node %q needs a device, an address and a prefix for its pods", n.Name)
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

// leastMTU is the smallest MTU that the pods' addresses allow.
func (t Topology) leastMTU() unit.Bytes {
	for _, p := range t.Pods {
		if p.Address.Is6() {
			return leastMTU6
		}
	}
	return leastMTU4
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
