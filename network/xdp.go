package network

// xdp is routed, with programs in the drivers' receive path that lead packets past the nodes' stacks.
func xdp() Network {
	return Network{
		Name:              "xdp",
		Summary:           "eBPF in the drivers' receive path (native XDP) redirects packets from pod to pod and between pods and the underlay",
		UsedBy:            []string{"no common container network: it shows what redirection before socket buffers are made can do"},
		Crossing:          CrossPastStack,
		SameNodeUnderSwap: true,
		Build: func(t Topology) Plan {
			d := newDraft(t, 0)
			// Nodes don't forward: what the programs did not redirect would be lost, and could not pass for their work.
			for i, n := range t.Nodes {
				d.nodeAddress(i)
				for _, j := range t.podsOf(i) {
					d.routedPod(j)
				}
				d.routesToOthers(i)
				d.add(XDPRedirection{
					In: InNode(i), Port: n.Device, PortMAC: mac(macPort, i), PortPeer: Device{InSwitch(), n.Name},
					Pods: d.xdpPods(i), Far: d.xdpFar(i),
				})
			}
			return byXDP(d.finish(d.upVeth, d.downVeth, d.leavePort, d.enterPort))
		},
	}
}

// byXDP has the paths of a plan pass their nodes by XDP. What a program sends out of a device, and what arrives at its other
// end, is counted as a frame; taps see packets only in the pods.
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

// xdpPods are those of a node.
func (d *draft) xdpPods(node int) []XDPPod {
	pods := make([]XDPPod, 0, len(d.t.Pods))
	for _, j := range d.t.podsOf(node) {
		pods = append(pods, XDPPod{
			Address: d.t.Pods[j].Address, Device: d.podDevice(j), NodeEnd: d.nodeEnd(j).Name, MAC: mac(macPod, j), Gateway: gatewayMAC(),
		})
	}
	return pods
}

// xdpFar are the pods of all nodes but one.
func (d *draft) xdpFar(node int) []XDPFar {
	var all []XDPFar
	for _, p := range d.t.Pods {
		if p.Node != node {
			all = append(all, XDPFar{Address: p.Address, Port: mac(macPort, p.Node)})
		}
	}
	return all
}

// pastQueues refuses what the queue of a node's port would do, and a port of several links: what a program sends by XDP goes
// past the queues, straight to one driver. A link's rate holds all the same, at the switch's end of the next link.
func pastQueues(p Plan, t Topology) error {
	for _, op := range p.Ops {
		if _, is := op.(XDPRedirection); !is {
			continue
		}
		c := t.Conditions
		for _, one := range []struct {
			asked     bool
			condition string
		}{{c.LinkDelay > 0, "link.delay"}, {c.LinkLoss > 0, "link.loss"}, {c.LinkCount > 1, "link.count"}} {
			if one.asked {
				return &NotPossibleError{p.Network, one.condition, "its packets go past the queues of the nodes' ports, straight to the driver"}
			}
		}
	}
	return nil
}
