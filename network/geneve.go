package network

import (
	"strconv"

	"netdelta/result"
	"netdelta/unit"
)

// GenevePort is the UDP port of Geneve (RFC 8926, section 3.3).
const GenevePort = 6081

// geneveOverhead is what Geneve without options adds to a packet: the inner Ethernet header (14), Geneve (8), UDP (8), and the
// outer IP header. RFC 8926, section 3.
func geneveOverhead(underlay result.Family) unit.Bytes { return 14 + 8 + 8 + ipHeader(underlay) }

// geneve routes into Geneve tunnels, one for each other node.
func geneve() Network {
	return Network{
		Name:              "geneve",
		Summary:           "pods on a bridge of their node, which routes to other nodes through Geneve with fixed neighbours, a device for each node",
		UsedBy:            []string{"OVN-Kubernetes", "Antrea", "Cilium with Geneve"},
		Overhead:          geneveOverhead,
		Crossing:          CrossByTunnel,
		SameNodeUnderSwap: true,
		Build: func(t Topology) Plan {
			d := newDraft(t, geneveOverhead(t.Family))
			for i := range t.Nodes {
				d.nodeAddress(i)
				d.forwarding(i)
				d.nodeBridge(i)
				d.gatewayAddress(i)
				for k, other := range t.Nodes {
					if k != i {
						d.genevePeer(i, k, other)
					}
				}
				d.bridgedPods(i)
			}
			for j := range t.Pods {
				d.behindGateway(j)
			}
			leave, enter := d.throughTunnel(geneveDev)
			return d.finishBetween(d.upVeth, d.downVeth,
				func(node, other int) []Hop {
					return append([]Hop{receives(Device{InNode(node), bridgeDev}, RoleBridge)}, leave(node, other)...)
				},
				func(node, other int) []Hop {
					return append(enter(node, other), sends(Device{InNode(node), bridgeDev}, RoleBridge))
				})
		},
	}
}

// geneveDev is the name of a node's tunnel to another.
func geneveDev(_, other int) string { return "geneve" + strconv.Itoa(other) }

// genevePeer makes a node's tunnel to another one and leads to the pods there.
func (d *draft) genevePeer(node, peer int, other Node) {
	tunnel := Device{InNode(node), geneveDev(node, peer)}
	via := other.PodPrefix.Masked().Addr()
	d.add(Geneve{
		Device: tunnel, Role: RoleEncapsulation, MAC: pairMAC(node, peer), ID: 1, Port: GenevePort,
		Remote: other.Address.Addr(), MTU: d.mtu,
	})
	d.speaksIPv6(tunnel, node, peer)
	d.add(
		Neighbour{Device: tunnel, Address: via, MAC: pairMAC(peer, node)},
		Route{Device: tunnel, To: other.PodPrefix.Masked(), Via: via, OnLink: true},
	)
}
