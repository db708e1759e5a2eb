package network

// Cilium's port, which is the one that Linux took before there was a standard, and a number for the network of the pods: Cilium
// puts the identity of the sender there.
const (
	ebpfVxlanPort = 8472
	ebpfVxlanID   = 2
)

// ebpfVxlan is ebpf-routed within nodes, with a tunnel between them.
func ebpfVxlan() Network {
	return Network{
		Name:              "ebpf-vxlan",
		Summary:           "eBPF at the devices (tcx) redirects packets from pod to pod, and between nodes through one VXLAN device by metadata",
		UsedBy:            []string{"Cilium by default"},
		Overhead:          vxlanOverhead,
		Crossing:          CrossByTunnel,
		NoESP6:            "datagrams that its programs hand to the tunnel don't reach the other node then (tried on Linux 6.12; not found out why)",
		SameNodeUnderSwap: true,
		Build: func(t Topology) Plan {
			d := newDraft(t, vxlanOverhead(t.Family))
			for i, n := range t.Nodes {
				d.nodeAddress(i)
				d.forwarding(i)
				for _, j := range t.podsOf(i) {
					d.routedPod(j)
				}
				tunnel := Device{InNode(i), vxlanDev}
				d.add(Vxlan{
					Device: tunnel, Role: RoleEncapsulation, MAC: mac(macEncapsulation, i), External: true, Port: ebpfVxlanPort,
					Local: n.Address.Addr(), Under: Device{InNode(i), n.Device}, MTU: d.mtu,
				})
				d.add(Redirection{
					In: InNode(i), Entry: vxlanDev, Pods: d.redirectedPods(i), Tunnel: true, TunnelID: ebpfVxlanID, Near: n.Address.Addr(),
					Far: d.farPods(i),
				})
			}
			return d.finish(d.upVeth, d.downRedirected, d.leaveTunnel, d.enterTunnel)
		},
	}
}

// farPods are the pods of all nodes but one.
func (d *draft) farPods(node int) []FarPods {
	var all []FarPods
	for i, n := range d.t.Nodes {
		if i != node {
			all = append(all, FarPods{Pods: n.PodPrefix.Masked(), Node: n.Address.Addr()})
		}
	}
	return all
}
