package network

import "net/netip"

// routed makes each node the router of its pods.
func routed() Network {
	return Network{
		Name:              "routed",
		Summary:           "each pod is alone on a veth with its node as gateway; nodes route to each other's pods",
		UsedBy:            []string{"Calico without encapsulation", "Flannel host-gw", "kube-router"},
		SameNodeUnderSwap: true,
		Build: func(t Topology) Plan {
			d := newDraft(t, 0)
			for i, n := range t.Nodes {
				d.nodeAddress(i, n.Device)
				d.forwarding(i)
				for _, j := range t.podsOf(i) {
					d.routedPod(j)
				}
				d.routesToOthers(i)
			}
			return d.finish(d.upVeth, d.downVeth, d.leavePort, d.enterPort)
		},
	}
}

// routedPod gives a pod one address, and a gateway that exists nowhere but in its table of neighbours: so all pods of all
// nodes are set up alike, and no address is spent on the node's side.
func (d *draft) routedPod(pod int) {
	gateway := netip.AddrFrom4([4]byte{169, 254, 1, 1})
	gatewayMAC := MAC{0xee, 0xee, 0xee, 0xee, 0xee, 0xee}
	dev := d.podDevice(pod)
	d.podVeth(pod, gatewayMAC)
	d.add(
		Address{Device: dev, Prefix: alone(d.t.Pods[pod].Address)},
		Neighbour{Device: dev, Address: gateway, MAC: gatewayMAC},
		Route{Device: dev, To: alone(gateway)},
		Route{Device: dev, To: everywhere(), Via: gateway},
		Route{Device: d.nodeEnd(pod), To: alone(d.t.Pods[pod].Address)},
	)
}

// routesToOthers leads from a node to the pods of all others.
func (d *draft) routesToOthers(node int) {
	for i, n := range d.t.Nodes {
		if i != node {
			d.add(Route{Device: Device{InNode(node), d.t.Nodes[node].Device}, To: n.PodPrefix.Masked(), Via: n.Address.Addr()})
		}
	}
}
