package network

import (
	"net/netip"

	"netdelta/result"
)

// routed makes each node the router of its pods.
func routed() Network {
	return Network{
		Name:     "routed",
		Summary:  "each pod is alone on a veth with its node as gateway; nodes route to each other's pods",
		UsedBy:   []string{"Calico without encapsulation", "Flannel host-gw", "kube-router"},
		Crossing: CrossByRoute,
		FromNode: NodeRoutes,
		Build:    drafted(nil, routedPlan),
	}
}

// wireguard routes pods' packets into an encrypting device.
func wireguard() Network {
	return Network{
		Name:       "wireguard",
		Summary:    "each pod is alone on a veth with its node as gateway; nodes route to each other's pods through WireGuard",
		UsedBy:     []string{"Calico with WireGuard", "Cilium with WireGuard", "Flannel WireGuard", "Kilo"},
		Overhead:   wireGuardOverhead,
		Crossing:   CrossByRoute,
		Encryption: result.WireGuard,
		Build:      drafted(nil, routedPlan),
	}
}

// ipsec has nodes encrypt what they route to each other's pods.
func ipsec() Network {
	return Network{
		Name:       "ipsec",
		Summary:    "each pod is alone on a veth with its node as gateway; nodes route to each other's pods through ESP tunnels with AES-GCM",
		UsedBy:     []string{"Cilium with IPsec", "Antrea with IPsec", "Weave Net IPsec", "Flannel IPsec"},
		Overhead:   ipsecOverhead,
		Crossing:   CrossByRoute,
		Encryption: result.IPsec,
		Build:      drafted(nil, routedPlan),
	}
}

// netkit joins pods to their nodes by pairs of devices without a link layer.
func netkit() Network {
	return Network{
		Name:     "netkit",
		Summary:  "each pod is alone on a netkit pair in L3 mode, without link addresses; nodes route to each other's pods",
		UsedBy:   []string{"pods of Cilium with netkit (routed here, without its eBPF)"},
		Crossing: CrossByRoute,
		FromNode: NodeRoutes,
		Build:    drafted(nil, func(d *draft) Plan { return d.routedBy(d.netkitPod(3)) }),
	}
}

// netkitL2 joins pods to their nodes by pairs of devices with link addresses, as veth does.
func netkitL2() Network {
	return Network{
		Name:     "netkit-l2",
		Summary:  "each pod is alone on a netkit pair in L2 mode with its node as gateway; nodes route to each other's pods",
		UsedBy:   []string{"pods of Cilium with netkit-l2 (routed here, without its eBPF)"},
		Crossing: CrossByRoute,
		FromNode: NodeRoutes,
		Build:    drafted(nil, func(d *draft) Plan { return d.routedBy(d.netkitPod(2)) }),
	}
}

// sockmap is routed, with the TCP sockets of pods on one node joined.
func sockmap() Network {
	return Network{
		Name:          "sockmap",
		Summary:       "TCP sockets of pods on one node are joined by eBPF, past all devices; all else is routed",
		UsedBy:        []string{"Cilium sockops (formerly)", "Merbridge", "Istio and Kuma with Merbridge"},
		Demonstration: true,
		Crossing:      CrossByRoute,
		Build: drafted(nil, func(d *draft) Plan {
			p := routedPlan(d)
			join := JoinSockets{}
			for _, pod := range d.t.Pods {
				join.Pods = append(join.Pods, JoinedPod{Address: pod.Address, Node: pod.Node})
			}
			p.Ops = append(p.Ops, join)
			routed := p.path
			p.path = func(from, to int, protocol Protocol) []Hop {
				if protocol == TCP && p.SameNode(from, to) {
					return nil
				}
				return routed(from, to, protocol)
			}
			return p
		}),
	}
}

// routedPlan makes each node the router of its pods, which are alone on a veth.
func routedPlan(d *draft) Plan { return d.routedBy(d.routedPod) }

// routedBy makes each node the router of its pods, which join attaches.
func (d *draft) routedBy(join func(pod int)) Plan {
	d.eachNode(d.nodeAddress, d.forwarding, d.forPods(join), d.routesToOthers)
	return d.finish(d.veth, d.port)
}

// gatewayMAC is the MAC of the node's end of each pod's veth: so all pods of all nodes are set up alike.
func gatewayMAC() MAC { return MAC{0xee, 0xee, 0xee, 0xee, 0xee, 0xee} }

// routedPod gives a pod one address, and a gateway that it finds in its table of neighbours, so that no address is spent on
// the node's side.
func (d *draft) routedPod(pod int) {
	d.podVeth(pod, gatewayMAC())
	d.behindNode(pod)
}

// netkitPod joins a pod to its node, which holds the primary device of the pair.
func (d *draft) netkitPod(layer int) func(pod int) {
	return func(pod int) {
		d.quiet(InPod(pod))
		dev, address := d.podDevice(pod), d.t.Pods[pod].Address
		devices := Netkit{
			Primary: End{Device: d.nodeEnd(pod), Role: RoleNodeEnd}, Peer: End{Device: dev, Role: RolePod}, Layer: layer, MTU: d.mtu,
		}
		if layer == 2 {
			devices.Primary.MAC, devices.Peer.MAC = gatewayMAC(), mac(macPod, pod)
			d.add(devices)
			d.behindNode(pod)
			return
		}
		d.add(devices)
		d.address(dev, mac(macPod, pod), alone(address))
		if d.t.Family == result.IPv6 {
			// With it the node's end begins to speak IPv6.
			d.add(Address{Device: d.nodeEnd(pod), Prefix: linkLocal(gatewayMAC())})
		}
		d.add(
			Route{Device: dev, To: everywhere(d.t.Family)},
			Route{Device: d.nodeEnd(pod), To: alone(address)},
		)
	}
}

// behindNode gives a pod that is alone with its node its address, and the way to all others.
func (d *draft) behindNode(pod int) {
	dev, address := d.podDevice(pod), d.t.Pods[pod].Address
	d.address(dev, mac(macPod, pod), alone(address))
	gateway := d.podGateway(pod)
	d.add(
		Neighbour{Device: dev, Address: gateway, MAC: gatewayMAC()},
		Route{Device: dev, To: everywhere(d.t.Family), Via: gateway},
		Route{Device: d.nodeEnd(pod), To: alone(address)},
	)
}

// podGateway makes the gateway of a routed pod known and returns its address. Under IPv4 it exists nowhere; under IPv6 it is
// the link-local address of the node's end, from which the node looks for the pod.
func (d *draft) podGateway(pod int) netip.Addr {
	if d.t.Family == result.IPv6 {
		at := linkLocal(gatewayMAC())
		d.add(Address{Device: d.nodeEnd(pod), Prefix: at})
		return at.Addr()
	}
	gateway := netip.AddrFrom4([4]byte{169, 254, 1, 1})
	d.add(Route{Device: d.podDevice(pod), To: alone(gateway)})
	return gateway
}

// routesToOthers leads from a node to the pods of all others.
func (d *draft) routesToOthers(node int) {
	for _, other := range d.t.others(node) {
		d.add(Route{Device: d.portOf(node), To: other.PodPrefix.Masked(), Via: other.Address.Addr()})
	}
}

// Cilium's port, which Linux used before there was a standard, and a number for the network of the pods: Cilium puts the
// sender's identity there.
const (
	ebpfVxlanPort = 8472
	ebpfVxlanID   = 2
)

// ebpfRouted is routed, with programs at the devices that lead packets past the nodes' stacks.
func ebpfRouted() Network {
	return Network{
		Name:     "ebpf-routed",
		Summary:  "eBPF at the devices (tcx) redirects packets from pod to pod, and from the underlay into pods; nodes route to each other's pods",
		UsedBy:   []string{"Cilium native routing, without kube-proxy"},
		Crossing: CrossPastStack,
		FromNode: NodeRoutes,
		Build: drafted(nil, func(d *draft) Plan {
			d.eachNode(d.nodeAddress, d.forwarding, d.forPods(d.routedPod), d.routesToOthers, func(node int) {
				d.add(Redirection{In: InNode(node), Entry: d.t.Nodes[node].Device, Pods: d.redirectedPods(node)})
			})
			return d.finishWays(d.veth, d.device, d.port)
		}),
	}
}

// ebpfVxlan is ebpf-routed within nodes, with a tunnel between them.
func ebpfVxlan() Network {
	return Network{
		Name:     "ebpf-vxlan",
		Summary:  "eBPF at the devices (tcx) redirects packets from pod to pod, and between nodes through one VXLAN device by metadata",
		UsedBy:   []string{"Cilium with VXLAN, without kube-proxy"},
		Overhead: vxlanOverhead,
		Crossing: CrossByTunnel,
		NoESP6:   "datagrams that its programs hand to the tunnel don't reach the other node then (tried on Linux 6.12; not found out why)",
		Build: drafted(vxlanOverhead, func(d *draft) Plan {
			d.eachNode(d.nodeAddress, d.forwarding, d.forPods(d.routedPod), func(node int) {
				local := d.t.Nodes[node].Address.Addr()
				d.add(Vxlan{
					Device: Device{InNode(node), vxlanDev}, Role: RoleEncapsulation, MAC: mac(macEncapsulation, node), External: true,
					Port: ebpfVxlanPort, Local: local, Under: d.portOf(node), MTU: d.mtu,
				})
				to := Redirection{In: InNode(node), Entry: vxlanDev, Pods: d.redirectedPods(node), Tunnel: true, TunnelID: ebpfVxlanID, Near: local}
				for _, other := range d.t.others(node) {
					to.Far = append(to.Far, FarPods{Pods: other.PodPrefix.Masked(), Node: other.Address.Addr()})
				}
				d.add(to)
			})
			return d.finishWays(d.veth, d.device, d.tunnel(oneName(vxlanDev)))
		}),
	}
}

// redirectedPods lists a node's pods.
func (d *draft) redirectedPods(node int) []RedirectedPod {
	pods := make([]RedirectedPod, 0, len(d.t.Pods))
	for _, j := range d.t.podsOf(node) {
		pods = append(pods, RedirectedPod{
			Address: d.t.Pods[j].Address, Device: d.podDevice(j), NodeEnd: d.nodeEnd(j).Name, MAC: mac(macPod, j), Gateway: gatewayMAC(),
		})
	}
	return pods
}

// xdp is routed, with programs in the drivers' receive path that lead packets past the nodes' stacks.
func xdp() Network {
	return Network{
		Name:          "xdp",
		Summary:       "eBPF in the drivers' receive path (native XDP) redirects packets from pod to pod and between pods and the underlay",
		UsedBy:        []string{"no common container network"},
		Demonstration: true,
		Crossing:      CrossPastStack,
		Build: drafted(nil, func(d *draft) Plan {
			// Nodes don't forward: a packet that the programs did not redirect would be lost, and could not pass for their work.
			d.eachNode(d.nodeAddress, d.forPods(d.routedPod), d.routesToOthers, func(node int) {
				n := d.t.Nodes[node]
				to := XDPRedirection{
					In: InNode(node), Port: n.Device, PortMAC: d.t.wireMAC(node), PortPeer: Device{InSwitch(), n.Name}, Pods: d.redirectedPods(node),
				}
				for _, p := range d.t.Pods {
					if p.Node != node {
						to.Far = append(to.Far, XDPFar{Address: p.Address, Port: d.t.wireMAC(p.Node)})
					}
				}
				d.add(to)
			})
			return byXDP(d.finish(d.veth, d.port))
		}),
	}
}

// byXDP has the paths of a plan pass their nodes by XDP. A packet that a program sends out of a device is counted as a frame
// there and at the device's other end; taps see packets only in the pods.
func byXDP(p Plan) Plan {
	path := p.path
	p.path = func(from, to int, protocol Protocol) []Hop {
		hops := path(from, to, protocol)
		for i, h := range hops {
			inNode := h.In.Kind == NodeSpace
			hops[i].Unseen = inNode
			hops[i].Framed = inNode == h.Sends
		}
		return hops
	}
	return p
}
