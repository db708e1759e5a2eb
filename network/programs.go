package network

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
		UsedBy:   []string{"Cilium with native routing, without kube-proxy"},
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
		Name:     "xdp",
		Summary:  "eBPF in the drivers' receive path (native XDP) redirects packets from pod to pod and between pods and the underlay",
		UsedBy:   []string{"no common container network"},
		Crossing: CrossPastStack,
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
