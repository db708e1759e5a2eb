package network

import "netdelta/result"

// netkit joins pods to their nodes by pairs of devices without a link layer.
func netkit() Network {
	return Network{
		Name:              "netkit",
		Summary:           "each pod is alone on a netkit pair in L3 mode, without link addresses; nodes route to each other's pods",
		UsedBy:            []string{"Cilium with netkit"},
		Crossing:          CrossByRoute,
		SameNodeUnderSwap: true,
		FromNode:          NodeRoutes,
		Build:             func(t Topology) Plan { return netkitPlan(t, 3) },
	}
}

// netkitL2 joins pods to their nodes by pairs of devices with link addresses, as veth does.
func netkitL2() Network {
	return Network{
		Name:              "netkit-l2",
		Summary:           "each pod is alone on a netkit pair in L2 mode with its node as gateway; nodes route to each other's pods",
		UsedBy:            []string{"Cilium with netkit-l2"},
		Crossing:          CrossByRoute,
		SameNodeUnderSwap: true,
		FromNode:          NodeRoutes,
		Build:             func(t Topology) Plan { return netkitPlan(t, 2) },
	}
}

// netkitPlan is that of routed, with other pairs.
func netkitPlan(t Topology, layer int) Plan {
	d := newDraft(t, 0)
	for i := range t.Nodes {
		d.nodeAddress(i)
		d.forwarding(i)
		for _, j := range t.podsOf(i) {
			d.netkitPod(j, layer)
		}
		d.routesToOthers(i)
	}
	return d.finish(d.upVeth, d.downVeth, d.leavePort, d.enterPort)
}

// netkitPod joins a pod to its node, which holds the primary device of the pair.
func (d *draft) netkitPod(pod, layer int) {
	d.quiet(InPod(pod))
	dev, address := d.podDevice(pod), d.t.Pods[pod].Address
	pair := Netkit{
		Primary: End{Device: d.nodeEnd(pod), Role: RoleNodeEnd}, Peer: End{Device: dev, Role: RolePod}, Layer: layer, MTU: d.mtu,
	}
	if layer == 2 {
		pair.Primary.MAC, pair.Peer.MAC = gatewayMAC(), mac(macPod, pod)
		d.add(pair)
		d.behindNode(pod)
		return
	}
	d.add(pair)
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
