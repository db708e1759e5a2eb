package network

// macvlan gives each pod a sub-device of the node's port.
func macvlan() Network {
	return Network{
		Name:              "macvlan",
		Summary:           "each pod has a macvlan device over the node's underlay port, in bridge mode, with a MAC of its own",
		UsedBy:            []string{"Docker macvlan", "CNI macvlan with Multus"},
		Crossing:          CrossOnLink,
		SameNodeUnderSwap: true,
		Build: func(t Topology) Plan {
			d := newDraft(t, 0)
			for i, n := range t.Nodes {
				d.nodeAddress(i)
				for _, j := range t.podsOf(i) {
					d.quiet(InPod(j))
					d.add(Macvlan{Device: d.podDevice(j), Role: RolePod, MAC: mac(macPod, j), Parent: Device{InNode(i), n.Device}, MTU: d.mtu})
					d.onePrefix(j)
				}
			}
			return d.finish(d.upDevice, d.downDevice, d.leavePort, d.enterPort)
		},
	}
}
