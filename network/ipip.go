package network

import (
	"strconv"

	"netdelta/result"
	"netdelta/unit"
)

// ipipOverhead is what IPIP adds to a packet: another IP header. RFC 2003, RFC 2473.
func ipipOverhead(underlay result.Family) unit.Bytes { return ipHeader(underlay) }

// ipip routes into a device that puts IP packets into IP packets.
func ipip() Network {
	return Network{
		Name:              "ipip",
		Summary:           "each pod is alone on a veth with its node as gateway; nodes route to each other's pods through IP-in-IP",
		UsedBy:            []string{"Calico IPIP", "kube-router overlay", "Flannel IPIP"},
		Overhead:          ipipOverhead,
		Crossing:          CrossByTunnel,
		SameNodeUnderSwap: true,
		FromNode:          NodeTunnels,
		Build: func(t Topology) Plan {
			d := newDraft(t, ipipOverhead(t.Family))
			for i, n := range t.Nodes {
				d.routingNode(i)
				if t.Family == result.IPv6 {
					d.ipipToEach(i)
				} else {
					d.ipipToAll(i, n)
				}
			}
			leave, enter := d.throughTunnel(d.ipipDev)
			return d.finishBetween(d.upVeth, d.downVeth, leave, enter)
		},
	}
}

// ipipDev is the name of a node's tunnel to another. The kernel itself makes a tunl0 where the module is loaded.
func (d *draft) ipipDev(_, other int) string {
	if d.t.Family == result.IPv6 {
		return "tunlnode" + strconv.Itoa(other)
	}
	return "tunl1"
}

// ipipToAll makes one device that leads to all other nodes: the next hop of a route is the far end of its tunnel.
func (d *draft) ipipToAll(node int, n Node) {
	tunnel := Device{InNode(node), d.ipipDev(node, node)}
	d.add(Tunnel{
		Device: tunnel, Role: RoleEncapsulation, Kind: IPIP, Local: n.Address.Addr(), Under: Device{InNode(node), n.Device}, MTU: d.mtu,
	})
	d.tunnelAddress(node, tunnel)
	for k, other := range d.t.Nodes {
		if k != node {
			d.add(Route{Device: tunnel, To: other.PodPrefix.Masked(), Via: other.Address.Addr(), OnLink: true})
		}
	}
}

// ipipToEach makes a device for each other node: under IPv6 no next hop may be on a tunnel that a route says is elsewhere.
func (d *draft) ipipToEach(node int) {
	for k, other := range d.t.Nodes {
		if k != node {
			d.tunnelTo(node, k, Tunnel{Device: Device{InNode(node), d.ipipDev(node, k)}, Kind: IPIP}, other)
		}
	}
}

// tunnelTo completes a node's tunnel to another one, and leads to the pods there.
func (d *draft) tunnelTo(node, peer int, tunnel Tunnel, other Node) {
	n := d.t.Nodes[node]
	tunnel.Role, tunnel.Under, tunnel.MTU = RoleEncapsulation, Device{InNode(node), n.Device}, d.mtu
	tunnel.Local, tunnel.Remote = n.Address.Addr(), other.Address.Addr()
	d.add(tunnel)
	d.speaksIPv6(tunnel.Device, node, peer)
	d.add(Route{Device: tunnel.Device, To: other.PodPrefix.Masked()})
}

// routingNode makes a node the router of its pods, without ways to those of other nodes.
func (d *draft) routingNode(node int) {
	d.nodeAddress(node)
	d.forwarding(node)
	for _, j := range d.t.podsOf(node) {
		d.routedPod(j)
	}
}

// speaksIPv6 gives a node's tunnel to another an address of its link where that is what makes it speak the topology's version
// of IP. Packets that are only passed on need no more.
func (d *draft) speaksIPv6(tunnel Device, node, other int) {
	if d.t.Family == result.IPv6 {
		d.add(Address{Device: tunnel, Prefix: linkLocal(pairMAC(node, other))})
	}
}

// pairMAC is that of a node's tunnel to another.
func pairMAC(node, other int) MAC { return mac(macEncapsulation, node<<8|other) }

// tunnelAddress gives a node's tunnel the first address of its pods' range.
func (d *draft) tunnelAddress(node int, tunnel Device) {
	d.address(tunnel, mac(macEncapsulation, node), alone(d.t.Nodes[node].PodPrefix.Masked().Addr()))
}

// throughTunnel crosses the tunnel device that name gives for a node and another, and the node's port.
func (d *draft) throughTunnel(name func(node, other int) string) (leave, enter func(node, other int) []Hop) {
	port := func(node int) Device { return Device{InNode(node), d.t.Nodes[node].Device} }
	leave = func(node, other int) []Hop {
		out := sends(port(node), RolePort)
		out.Encapsulated = true
		return []Hop{sends(Device{InNode(node), name(node, other)}, RoleEncapsulation), out}
	}
	enter = func(node, other int) []Hop {
		in := receives(port(node), RolePort)
		in.Encapsulated = true
		return []Hop{in, receives(Device{InNode(node), name(node, other)}, RoleEncapsulation)}
	}
	return leave, enter
}

// finishBetween is finish for networks with a device for each other node.
func (d *draft) finishBetween(up, down func(pod int) []Hop, leave, enter func(node, other int) []Hop) Plan {
	t := d.t
	d.plan.path = func(from, to int, _ Protocol) []Hop {
		hops := up(from)
		if a, b := t.Pods[from].Node, t.Pods[to].Node; a != b {
			hops = append(hops, leave(a, b)...)
			hops = append(hops, enter(b, a)...)
		}
		return append(hops, down(to)...)
	}
	return d.plan
}
