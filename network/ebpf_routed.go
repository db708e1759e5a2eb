package network

// ebpfRouted is routed, with programs at the devices that lead packets past the nodes' stacks.
func ebpfRouted() Network {
	return Network{
		Name:              "ebpf-routed",
		Summary:           "eBPF at the devices (tcx) redirects packets from pod to pod, and from the underlay into pods; nodes route to each other's pods",
		UsedBy:            []string{"Cilium with native routing"},
		Crossing:          CrossPastStack,
		SameNodeUnderSwap: true,
		FromNode:          NodeRoutes,
		Build: func(t Topology) Plan {
			d := newDraft(t, 0)
			for i, n := range t.Nodes {
				d.nodeAddress(i)
				d.forwarding(i)
				for _, j := range t.podsOf(i) {
					d.routedPod(j)
				}
				d.routesToOthers(i)
				d.add(Redirection{In: InNode(i), Entry: n.Device, Pods: d.redirectedPods(i)})
			}
			return d.finish(d.upVeth, d.downRedirected, d.leavePort, d.enterPort)
		},
	}
}

// redirectedPods are those of a node.
func (d *draft) redirectedPods(node int) []RedirectedPod {
	pods := make([]RedirectedPod, 0, len(d.t.Pods))
	for _, j := range d.t.podsOf(node) {
		pods = append(pods, RedirectedPod{
			Address: d.t.Pods[j].Address, NodeEnd: d.nodeEnd(j).Name, MAC: mac(macPod, j), Gateway: gatewayMAC(),
		})
	}
	return pods
}

// downRedirected is the way of a packet that comes to be in the pod's namespace without passing the node's end of the veth.
func (d *draft) downRedirected(pod int) []Hop { return []Hop{receives(d.podDevice(pod), RolePod)} }
