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
		UsedBy:     []string{"Cilium with IPsec", "Antrea with IPsec", "Weave Net encryption", "Flannel IPsec"},
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
		Name:     "sockmap",
		Summary:  "TCP sockets of pods on one node are joined by eBPF, past all devices; all else is routed",
		UsedBy:   []string{"Cilium sockops (formerly)", "Merbridge", "Istio and Kuma with Merbridge"},
		Crossing: CrossByRoute,
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
