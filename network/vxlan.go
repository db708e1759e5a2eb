package network

import (
	"netdelta/result"
	"netdelta/unit"
)

// vxlanOverhead is what VXLAN adds to a packet: the inner Ethernet header (14), VXLAN (8), UDP (8), and the outer IP header,
// which makes 50 bytes over IPv4 and 70 over IPv6. RFC 7348, section 5.
func vxlanOverhead(underlay result.Family) unit.Bytes { return 14 + 8 + 8 + ipHeader(underlay) }

// vxlan joins the nodes' bridges by tunnels that learn.
func vxlan() Network {
	return Network{
		Name:              "vxlan",
		Summary:           "one flat link over all nodes: bridges joined by VXLAN, which floods and learns",
		UsedBy:            []string{"Docker overlay", "OpenStack Linux bridge agent"},
		Overhead:          vxlanOverhead,
		Crossing:          CrossByTunnel,
		SameNodeUnderSwap: true,
		Build: func(t Topology) Plan {
			d := newDraft(t, vxlanOverhead(t.Family))
			for i := range t.Nodes {
				d.nodeAddress(i)
				d.nodeBridge(i)
				tunnel := Device{InNode(i), vxlanDev}
				d.tunnel(i, 4097, 4789, true)
				d.add(Enslave{Device: tunnel, Bridge: bridgeDev})
				for k, other := range t.Nodes {
					if k != i {
						d.add(Forward{Device: tunnel, To: other.Address.Addr()})
					}
				}
				d.bridgedPods(i)
			}
			for j := range t.Pods {
				d.onePrefix(j)
			}
			return d.finish(d.upVeth, d.downVeth, d.leaveTunnel, d.enterTunnel)
		},
	}
}

// vxlanRouted routes into a tunnel that has been told all it needs to know.
func vxlanRouted() Network {
	return Network{
		Name:              "vxlan-routed",
		Summary:           "pods on a bridge of their node, which routes to other nodes through VXLAN with fixed neighbours and forwarding entries",
		UsedBy:            []string{"Flannel VXLAN", "Calico VXLAN", "k3s"},
		Overhead:          vxlanOverhead,
		Crossing:          CrossByTunnel,
		SameNodeUnderSwap: true,
		FromNode:          NodeTunnels,
		Build: func(t Topology) Plan {
			d := newDraft(t, vxlanOverhead(t.Family))
			for i, n := range t.Nodes {
				d.nodeAddress(i)
				d.forwarding(i)
				d.nodeBridge(i)
				d.gatewayAddress(i)
				d.tunnel(i, 1, 8472, false)
				// The first address of the pods' range is that of the tunnel.
				d.address(Device{InNode(i), vxlanDev}, mac(macEncapsulation, i), alone(n.PodPrefix.Masked().Addr()))
				d.tunnelsToOthers(i)
				d.bridgedPods(i)
			}
			for j := range t.Pods {
				d.behindGateway(j)
			}
			return d.finish(d.upVeth, d.downVeth, d.routeIntoTunnel, d.routeOutOfTunnel)
		},
	}
}

// tunnel makes the node's VXLAN device.
func (d *draft) tunnel(node int, id uint32, port uint16, learning bool) {
	n := d.t.Nodes[node]
	d.add(Vxlan{
		Device: Device{InNode(node), vxlanDev}, Role: RoleEncapsulation, MAC: mac(macEncapsulation, node),
		ID: id, Port: port, Local: n.Address.Addr(), Under: Device{InNode(node), n.Device}, Learning: learning, MTU: d.mtu,
	})
}

// tunnelsToOthers tells a node, for each other one, the route to its pods, its tunnel's MAC and its underlay address.
func (d *draft) tunnelsToOthers(node int) {
	tunnel := Device{InNode(node), vxlanDev}
	for k, other := range d.t.Nodes {
		if k == node {
			continue
		}
		via, far := other.PodPrefix.Masked().Addr(), mac(macEncapsulation, k)
		d.add(
			Neighbour{Device: tunnel, Address: via, MAC: far},
			Forward{Device: tunnel, MAC: far, To: other.Address.Addr()},
			Route{Device: tunnel, To: other.PodPrefix.Masked(), Via: via, OnLink: true},
		)
	}
}

// routeIntoTunnel and routeOutOfTunnel pass the node's bridge as a device, since the node routes here.
func (d *draft) routeIntoTunnel(node int) []Hop {
	return append([]Hop{receives(Device{InNode(node), bridgeDev}, RoleBridge)}, d.leaveTunnel(node)...)
}

func (d *draft) routeOutOfTunnel(node int) []Hop {
	return append(d.enterTunnel(node), sends(Device{InNode(node), bridgeDev}, RoleBridge))
}
