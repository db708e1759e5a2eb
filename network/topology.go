package network

import (
	"cmp"
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
	l.MTU = cmp.Or(l.MTU, DefaultMTU)
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

// knownFamily refuses what is no family.
func knownFamily(f result.Family) error {
	switch f {
	case "", result.IPv4, result.IPv6:
		return nil
	}
	return fmt.Errorf("address family %q: need %s or %s", f, result.IPv4, result.IPv6)
}

// familyName is the name for people.
func familyName(f result.Family) string { return byFamily(f, "IPv4", "IPv6") }

// byFamily is one value under IPv4, which "" is too, and another under IPv6.
func byFamily[T any](f result.Family, four, six T) T {
	if f == result.IPv6 {
		return six
	}
	return four
}

// inFamily tells whether an address is of the family.
func inFamily(f result.Family, a netip.Addr) bool { return a.Is6() == (f == result.IPv6) }

// leastMTU is the smallest MTU that pods may have: the least of a link that carries IPv6 (RFC 8200, section 5), or the
// datagram that each IPv4 host must be able to receive whole (RFC 791, section 3.1).
func leastMTU(f result.Family) unit.Bytes { return byFamily[unit.Bytes](f, 576, 1280) }

// ipHeader is the size of a packet's IP header without options or extensions.
func ipHeader(f result.Family) unit.Bytes { return byFamily[unit.Bytes](f, 20, 40) }

// nodeAddress is the underlay address of a node on a segment, with the underlay's prefix length.
func nodeAddress(f result.Family, segment uint8, node int) netip.Prefix {
	return byFamily(f, benchmark4(18, segment, byte(node+1), 24), netip.PrefixFrom(benchmark6(uint16(segment), byte(node+1)), 64))
}

// innerAddress is the address of a node inside an encrypting device, with the prefix length of the range of all nodes' addresses.
func innerAddress(f result.Family, node int) netip.Prefix {
	return byFamily(f, benchmark4(18, innerSegment, byte(node+1), 24), netip.PrefixFrom(benchmark6(innerSegment, byte(node+1)), 64))
}

// innerSegment is where the addresses of nodes inside an encrypting device are.
const innerSegment = 1

// podPrefix is the range of a node's pods.
func podPrefix(f result.Family, node int) netip.Prefix {
	return byFamily(f, benchmark4(19, byte(node), 0, 24), netip.PrefixFrom(benchmark6(podSubnets6+uint16(node), 0), 64))
}

// podAddress is the address of pod k of a node.
func podAddress(f result.Family, node, k int) netip.Addr {
	return byFamily(f, benchmark4(19, byte(node), byte(10+k), 32).Addr(), benchmark6(podSubnets6+uint16(node), byte(0x10+k)))
}

// podBits is the prefix length of the range that holds the pods of all nodes.
func podBits(f result.Family) int { return byFamily(f, 16, 56) }

// podSubnets6 is the first node's pod subnet in the range for benchmarks: a multiple of 256, so that the subnets of all nodes
// have a prefix in common that does not hold the underlay.
const podSubnets6 = 0x100

// benchmark4 is an address in 198.18.0.0/15 (RFC 2544), with a prefix length.
func benchmark4(second, third, host byte, bits int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{198, second, third, host}), bits)
}

// benchmark6 is an address in 2001:2::/48 (RFC 5180).
func benchmark6(subnet uint16, host byte) netip.Addr {
	return netip.AddrFrom16([16]byte{0: 0x20, 1: 0x01, 3: 0x02, 6: byte(subnet >> 8), 7: byte(subnet), 15: host})
}

// everywhere is the default route's destination.
func everywhere(f result.Family) netip.Prefix {
	return netip.PrefixFrom(byFamily(f, netip.IPv4Unspecified(), netip.IPv6Unspecified()), 0)
}

// alone is the prefix of one address.
func alone(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }

// linkLocal is the address that a device with this MAC has on its link, by the modified EUI-64 (RFC 4291, appendix A).
func linkLocal(m MAC) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom16([16]byte{
		0: 0xfe, 1: 0x80, 8: m[0] ^ 0x02, 9: m[1], 10: m[2], 11: 0xff, 12: 0xfe, 13: m[3], 14: m[4], 15: m[5],
	}), 64)
}
