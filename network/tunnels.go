package network

import (
	"strconv"

	"netdelta/result"
	"netdelta/unit"
)

// UDP ports of tunnels.
const (
	// GenevePort is Geneve's (RFC 8926, section 3.3).
	GenevePort = 6081
	// UDPTunnelPort is udp-tun's: the default of Flannel's UDP backend.
	UDPTunnelPort = 8285
)

const (
	datapathDev = "ovs0"
	ovsTunnel   = "vxlan_sys"
	ovsNetwork  = 1 // the identifier in VXLAN
	tunDev      = "tun0"
)

// vxlanOverhead is what VXLAN adds to a packet: the inner Ethernet header (14), VXLAN (8), UDP (8), and the outer IP header,
// which makes 50 bytes over IPv4 and 70 over IPv6. RFC 7348, section 5. Geneve without options adds as much (RFC 8926, section 3).
func vxlanOverhead(underlay result.Family) unit.Bytes { return 14 + 8 + 8 + ipHeader(underlay) }

// udpTunOverhead is what a userspace tunnel without a header of its own adds to a packet: UDP (8) and the outer IP header.
func udpTunOverhead(underlay result.Family) unit.Bytes { return 8 + ipHeader(underlay) }

// ipipOverhead is what IPIP adds to a packet: another IP header. RFC 2003, RFC 2473.
func ipipOverhead(underlay result.Family) unit.Bytes { return ipHeader(underlay) }

// greOverhead is what GRE adds to a packet: its header of 4 bytes, without key and checksum, and another IP header. RFC 2784,
// RFC 7676.
func greOverhead(underlay result.Family) unit.Bytes { return 4 + ipHeader(underlay) }

// vxlan joins the nodes' bridges by tunnels that learn.
func vxlan() Network {
	return Network{
		Name:     "vxlan",
		Summary:  "one flat link over all nodes: bridges joined by VXLAN, which floods and learns",
		UsedBy:   []string{"Docker overlay", "OpenStack Linux bridge agent"},
		Overhead: vxlanOverhead,
		Crossing: CrossByTunnel,
		// OpenStack's agent sets it; Docker leaves its overlays' namespaces as the kernel makes them, which is so.
		BridgeNetfilter: true,
		Build: drafted(vxlanOverhead, func(d *draft) Plan {
			d.eachNode(d.nodeAddress, d.nodeBridge, d.learningTunnel, d.bridgedPods)
			d.eachPod(d.onePrefix)
			return d.finish(d.veth, d.tunnel(oneName(vxlanDev)))
		}),
	}
}

// vxlanRouted routes into a tunnel that has been told all it needs to know.
func vxlanRouted() Network {
	return tunnelBetweenBridges(Network{
		Name:     "vxlan-routed",
		Summary:  "pods on a bridge of their node, which routes to other nodes through VXLAN with fixed neighbours and forwarding entries",
		UsedBy:   []string{"Flannel VXLAN", "Calico VXLAN", "k3s"},
		Overhead: vxlanOverhead,
		FromNode: NodeTunnels,
		// kubeadm asks for it, and k3s sets it.
		BridgeNetfilter: true,
	}, (*draft).configuredTunnel, oneName(vxlanDev))
}

// geneve routes into Geneve tunnels, one for each other node.
func geneve() Network {
	return tunnelBetweenBridges(Network{
		Name:     "geneve",
		Summary:  "pods on a bridge of their node, which routes to other nodes through Geneve with fixed neighbours, a device for each node",
		UsedBy:   []string{"OVN-Kubernetes", "Antrea", "Cilium with Geneve"},
		Overhead: vxlanOverhead,
	}, (*draft).geneveTunnels, perPeer("geneve"))
}

// udpTun has a process on each node carry packets between nodes.
func udpTun() Network {
	return tunnelBetweenBridges(Network{
		Name:          "udp-tun",
		Summary:       "pods on a bridge of their node, which routes to other nodes through a TUN device; a process carries its packets in UDP datagrams",
		UsedBy:        []string{"Flannel UDP", "Weave Net sleeve", "userspace VPNs"},
		Demonstration: true,
		Overhead:      udpTunOverhead,
		// As for vxlan-routed.
		BridgeNetfilter: true,
	}, (*draft).udpTunnel, oneName(tunDev))
}

// ipip routes into a device that puts IP packets into IP packets.
func ipip() Network {
	return tunnelBetweenRouters(Network{
		Name:     "ipip",
		Summary:  "each pod is alone on a veth with its node as gateway; nodes route to each other's pods through IP-in-IP",
		UsedBy:   []string{"Calico IPIP", "kube-router overlay", "Flannel IPIP"},
		Overhead: ipipOverhead,
		FromNode: NodeTunnels,
	}, func(d *draft) (func(node int), func(other int) string) {
		// The kernel itself makes a tunl0 where the module is loaded. Under IPv6 no next hop may be on a tunnel that a route says is
		// elsewhere, so each peer has a device.
		if d.t.Family == result.IPv6 {
			name := perPeer("tunlnode")
			return d.tunnelsTo(IPIP, name), name
		}
		return d.ipipToAll, oneName("tunl1")
	})
}

// gre routes into devices that put IP packets into GRE, one for each other node.
func gre() Network {
	return tunnelBetweenRouters(Network{
		Name:     "gre",
		Summary:  "each pod is alone on a veth with its node as gateway; nodes route to each other's pods through GRE, a device for each node",
		UsedBy:   []string{"Antrea with GRE", "Open vSwitch with GRE", "Romana"},
		Overhead: greOverhead,
	}, func(d *draft) (func(node int), func(other int) string) {
		name := perPeer("grenode") // the kernel itself makes a gre0 where the module is loaded
		return d.tunnelsTo(GRE, name), name
	})
}

// ovs joins pods by the kernel's Open vSwitch, whose flows are all there from the start.
func ovs() Network {
	return Network{
		Name:     "ovs",
		Summary:  "one flat link over all nodes: each pod's veth is a port of an Open vSwitch kernel datapath with fixed flows, joined by VXLAN",
		UsedBy:   []string{"Weave Net fast datapath", "OVN-Kubernetes", "Antrea", "Kube-OVN"},
		Overhead: vxlanOverhead,
		Crossing: CrossByTunnel,
		Build: drafted(vxlanOverhead, func(d *draft) Plan {
			d.eachNode(d.nodeAddress, func(node int) {
				d.add(Vxlan{
					Device: Device{InNode(node), ovsTunnel}, Role: RoleEncapsulation, MAC: mac(macEncapsulation, node), Port: 4789, External: true,
					Local: d.t.Nodes[node].Address.Addr(), Under: d.portOf(node), MTU: d.mtu,
				})
			}, d.forPods(func(pod int) { d.podVeth(pod, mac(macNodeEnd, pod)) }), d.datapath)
			d.eachPod(d.onePrefix, d.knowsAll)
			return d.finish(d.veth, d.tunnel(oneName(ovsTunnel)))
		}),
	}
}

// tunnelBetweenBridges completes a network whose pods are on a bridge of their node, which routes to other nodes through
// the devices that encapsulate makes on a node; device is their name.
func tunnelBetweenBridges(n Network, encapsulate func(d *draft, node int), device func(other int) string) Network {
	n.Crossing = CrossByTunnel
	n.Build = drafted(n.Overhead, func(d *draft) Plan {
		d.eachNode(d.routingBridge, func(node int) { encapsulate(d, node) }, d.bridgedPods)
		d.eachPod(d.behindGateway)
		return d.finish(d.veth, d.throughBridge(d.tunnel(device)))
	})
	return n
}

// tunnelBetweenRouters completes a network whose pods are each alone on a veth with their node as gateway. tunnels returns
// what makes the tunnel devices of a node, and their name.
func tunnelBetweenRouters(n Network, tunnels func(d *draft) (encapsulate func(node int), device func(other int) string)) Network {
	n.Crossing = CrossByTunnel
	n.Build = drafted(n.Overhead, func(d *draft) Plan {
		encapsulate, device := tunnels(d)
		d.eachNode(d.nodeAddress, d.forwarding, d.forPods(d.routedPod), encapsulate)
		return d.finish(d.veth, d.tunnel(device))
	})
	return n
}

// oneName is for a node with one tunnel device to all others.
func oneName(device string) func(other int) string { return func(int) string { return device } }

// perPeer is for a node with a tunnel device to each other one.
func perPeer(prefix string) func(other int) string {
	return func(other int) string { return prefix + strconv.Itoa(other) }
}

// routingBridge makes a node the router of its pods, which are on its bridge.
func (d *draft) routingBridge(node int) {
	d.nodeAddress(node)
	d.forwarding(node)
	d.nodeBridge(node)
	d.gatewayAddress(node)
}

// vxlan makes a node's VXLAN device.
func (d *draft) vxlan(node int, id uint32, port uint16, learning bool) Device {
	dev := Device{InNode(node), vxlanDev}
	d.add(Vxlan{
		Device: dev, Role: RoleEncapsulation, MAC: mac(macEncapsulation, node), ID: id, Port: port,
		Local: d.t.Nodes[node].Address.Addr(), Under: d.portOf(node), Learning: learning, MTU: d.mtu,
	})
	return dev
}

// learningTunnel makes a node's VXLAN device a port of its bridge, and floods to all other nodes.
func (d *draft) learningTunnel(node int) {
	dev := d.vxlan(node, 4097, 4789, true)
	d.add(Enslave{Device: dev, Bridge: bridgeDev})
	for _, other := range d.t.others(node) {
		d.add(Forward{Device: dev, To: other.Address.Addr()})
	}
}

// configuredTunnel makes a node's VXLAN device and tells it, for each other node, the route to its pods, its tunnel's MAC and its
// underlay address.
func (d *draft) configuredTunnel(node int) {
	dev := d.vxlan(node, 1, 8472, false)
	d.tunnelAddress(node, dev)
	for k, other := range d.t.others(node) {
		via, far := other.PodPrefix.Masked().Addr(), mac(macEncapsulation, k)
		d.add(
			Neighbour{Device: dev, Address: via, MAC: far},
			Forward{Device: dev, MAC: far, To: other.Address.Addr()},
			Route{Device: dev, To: other.PodPrefix.Masked(), Via: via, OnLink: true},
		)
	}
}

// geneveTunnels makes a node's tunnels and leads to the pods of other nodes.
func (d *draft) geneveTunnels(node int) {
	for k, other := range d.t.others(node) {
		dev := Device{InNode(node), perPeer("geneve")(k)}
		via := other.PodPrefix.Masked().Addr()
		d.add(Geneve{
			Device: dev, Role: RoleEncapsulation, MAC: pairMAC(node, k), ID: 1, Port: GenevePort, Remote: other.Address.Addr(), MTU: d.mtu,
		})
		d.speaksIPv6(dev, node, k)
		d.add(
			Neighbour{Device: dev, Address: via, MAC: pairMAC(k, node)},
			Route{Device: dev, To: other.PodPrefix.Masked(), Via: via, OnLink: true},
		)
	}
}

// udpTunnel makes the node's tunnel and leads to the pods of all other nodes through it.
func (d *draft) udpTunnel(node int) {
	n := d.t.Nodes[node]
	tunnel := UDPTunnel{
		Device: Device{InNode(node), tunDev}, Role: RoleEncapsulation, Local: n.Address.Addr(), Port: UDPTunnelPort, MTU: d.mtu,
	}
	var routes []Op
	for _, other := range d.t.others(node) {
		pods := other.PodPrefix.Masked()
		tunnel.Peers = append(tunnel.Peers, TunnelPeer{Pods: pods, Node: other.Address.Addr()})
		routes = append(routes, Route{Device: tunnel.Device, To: pods})
	}
	// The first address of the pods' range is the tunnel's. A device without a link layer has no neighbours to look for.
	d.add(tunnel, Address{Device: tunnel.Device, Prefix: alone(n.PodPrefix.Masked().Addr())})
	d.add(routes...)
}

// ipipToAll makes one device that leads to all other nodes: the next hop of a route is the far end of its tunnel.
func (d *draft) ipipToAll(node int) {
	dev := Device{InNode(node), "tunl1"}
	d.add(Tunnel{
		Device: dev, Role: RoleEncapsulation, Kind: IPIP, Local: d.t.Nodes[node].Address.Addr(), Under: d.portOf(node), MTU: d.mtu,
	})
	d.tunnelAddress(node, dev)
	for _, other := range d.t.others(node) {
		d.add(Route{Device: dev, To: other.PodPrefix.Masked(), Via: other.Address.Addr(), OnLink: true})
	}
}

// tunnelsTo makes a node's tunnels, one to each other node, and leads to the pods there.
func (d *draft) tunnelsTo(kind TunnelKind, name func(other int) string) func(node int) {
	return func(node int) {
		for k, other := range d.t.others(node) {
			dev := Device{InNode(node), name(k)}
			d.add(Tunnel{
				Device: dev, Role: RoleEncapsulation, Kind: kind, Local: d.t.Nodes[node].Address.Addr(), Remote: other.Address.Addr(),
				Under: d.portOf(node), MTU: d.mtu,
			})
			d.speaksIPv6(dev, node, k)
			d.add(Route{Device: dev, To: other.PodPrefix.Masked()})
		}
	}
}

// speaksIPv6 gives a node's tunnel to another an address of its link where that is what makes it speak the topology's version
// of IP. Packets that are only passed on need no more.
func (d *draft) speaksIPv6(tunnel Device, node, other int) {
	if d.t.Family == result.IPv6 {
		d.add(Address{Device: tunnel, Prefix: linkLocal(pairMAC(node, other))})
	}
}

// pairMAC is the MAC of a node's tunnel to another.
func pairMAC(node, other int) MAC { return mac(macEncapsulation, node<<8|other) }

// tunnelAddress gives a node's tunnel the first address of its pods' range.
func (d *draft) tunnelAddress(node int, tunnel Device) {
	d.address(tunnel, mac(macEncapsulation, node), alone(d.t.Nodes[node].PodPrefix.Masked().Addr()))
}

// datapath makes the switch of a node: port 1 is the tunnel, and the node's pods follow.
func (d *draft) datapath(node int) {
	sw := Datapath{Device: Device{InNode(node), datapathDev}, Ports: []string{ovsTunnel}}
	const tunnel = 1
	pods := d.t.podsOf(node)
	port := map[int]int{} // by pod
	for k, j := range pods {
		sw.Ports = append(sw.Ports, d.nodeEnd(j).Name)
		port[j] = tunnel + 1 + k
	}
	local := d.t.Nodes[node].Address.Addr()
	for j, p := range d.t.Pods {
		to := mac(macPod, j)
		for _, from := range pods {
			f := Flow{In: port[from], To: to, Family: d.t.Family, Out: port[j]}
			if p.Node != node {
				f.Out = tunnel
				f.Through = &Encapsulate{ID: ovsNetwork, Local: local, Remote: d.t.Nodes[p.Node].Address.Addr()}
			}
			if from != j {
				sw.Flows = append(sw.Flows, f)
			}
		}
		if p.Node == node {
			sw.Flows = append(sw.Flows, Flow{In: tunnel, To: to, Family: d.t.Family, Out: port[j]})
		}
	}
	d.add(sw)
}

// knowsAll tells a pod the link addresses of all others: fixed flows lead no questions anywhere.
func (d *draft) knowsAll(pod int) {
	for j, p := range d.t.Pods {
		if j == pod {
			continue
		}
		d.add(Neighbour{Device: d.podDevice(pod), Address: p.Address, MAC: mac(macPod, j)})
		if d.t.Family == result.IPv6 {
			d.add(Neighbour{Device: d.podDevice(pod), Address: linkLocal(mac(macPod, j)).Addr(), MAC: mac(macPod, j)})
		}
	}
}
