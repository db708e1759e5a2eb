package network

import (
	"net/netip"

	"netdelta/result"
)

// routed makes each node the router of its pods.
func routed() Network {
	return Network{
		Name:              "routed",
		Summary:           "each pod is alone on a veth with its node as gateway; nodes route to each other's pods",
		UsedBy:            []string{"Calico without encapsulation", "Flannel host-gw", "kube-router"},
		Crossing:          CrossByRoute,
		SameNodeUnderSwap: true,
		FromNode:          NodeRoutes,
		Build:             routedPlan,
	}
}

// routedPlan makes each node the router of its pods.
func routedPlan(t Topology) Plan {
	d := newDraft(t, 0)
	for i := range t.Nodes {
		d.nodeAddress(i)
		d.forwarding(i)
		for _, j := range t.podsOf(i) {
			d.routedPod(j)
		}
		d.routesToOthers(i)
	}
	return d.finish(d.upVeth, d.downVeth, d.leavePort, d.enterPort)
}

// gatewayMAC is that of the node's end of each pod's veth: so all pods of all nodes are set up alike.
func gatewayMAC() MAC { return MAC{0xee, 0xee, 0xee, 0xee, 0xee, 0xee} }

// routedPod gives a pod one address, and a gateway that it finds in its table of neighbours, so that no address is spent on
// the node's side.
func (d *draft) routedPod(pod int) {
	d.podVeth(pod, gatewayMAC())
	d.behindNode(pod)
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
	for i, n := range d.t.Nodes {
		if i != node {
			d.add(Route{Device: Device{InNode(node), d.t.Nodes[node].Device}, To: n.PodPrefix.Masked(), Via: n.Address.Addr()})
		}
	}
}
