package network

import (
	"netdelta/result"
	"netdelta/unit"
)

// UDPTunnelPort is the UDP port of udp-tun: the one that Flannel's UDP backend takes unless it is told otherwise.
const UDPTunnelPort = 8285

const tunDev = "tun0"

// udpTunOverhead is what a userspace tunnel without a header of its own adds to a packet: UDP (8) and the outer IP header.
func udpTunOverhead(underlay result.Family) unit.Bytes { return 8 + ipHeader(underlay) }

// udpTun has a process on each node carry packets between nodes.
func udpTun() Network {
	return Network{
		Name:              "udp-tun",
		Summary:           "pods on a bridge of their node, which routes to other nodes through a TUN device; a process carries its packets in UDP datagrams",
		UsedBy:            []string{"Flannel UDP", "Weave Net sleeve", "userspace VPNs"},
		Overhead:          udpTunOverhead,
		Crossing:          CrossByTunnel,
		SameNodeUnderSwap: true,
		Build: func(t Topology) Plan {
			d := newDraft(t, udpTunOverhead(t.Family))
			for i := range t.Nodes {
				d.nodeAddress(i)
				d.forwarding(i)
				d.nodeBridge(i)
				d.gatewayAddress(i)
				d.udpTunnel(i)
				d.bridgedPods(i)
			}
			for j := range t.Pods {
				d.behindGateway(j)
			}
			return d.finish(d.upVeth, d.downVeth, d.leaveUDPTunnel, d.enterUDPTunnel)
		},
	}
}

// udpTunnel makes the node's tunnel and leads to the pods of all other nodes through it.
func (d *draft) udpTunnel(node int) {
	n := d.t.Nodes[node]
	tunnel := UDPTunnel{
		Device: Device{InNode(node), tunDev}, Role: RoleEncapsulation, Local: n.Address.Addr(), Port: UDPTunnelPort, MTU: d.mtu,
	}
	var routes []Op
	for k, other := range d.t.Nodes {
		if k == node {
			continue
		}
		pods := other.PodPrefix.Masked()
		tunnel.Peers = append(tunnel.Peers, TunnelPeer{Pods: pods, Node: other.Address.Addr()})
		routes = append(routes, Route{Device: tunnel.Device, To: pods})
	}
	d.add(tunnel)
	// The first address of the pods' range is that of the tunnel. A device without a link layer has no neighbours to look for.
	d.add(Address{Device: tunnel.Device, Prefix: alone(n.PodPrefix.Masked().Addr())})
	d.add(routes...)
}

// leaveUDPTunnel and enterUDPTunnel cross the node's bridge, its tunnel, and its port.
func (d *draft) leaveUDPTunnel(node int) []Hop {
	port := sends(Device{InNode(node), d.t.Nodes[node].Device}, RolePort)
	port.Encapsulated = true
	return []Hop{receives(Device{InNode(node), bridgeDev}, RoleBridge), sends(Device{InNode(node), tunDev}, RoleEncapsulation), port}
}

func (d *draft) enterUDPTunnel(node int) []Hop {
	port := receives(Device{InNode(node), d.t.Nodes[node].Device}, RolePort)
	port.Encapsulated = true
	return []Hop{port, receives(Device{InNode(node), tunDev}, RoleEncapsulation), sends(Device{InNode(node), bridgeDev}, RoleBridge)}
}
