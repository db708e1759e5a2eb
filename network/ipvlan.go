package network

// ipvlanL2 gives each pod a sub-device that shares the MAC of the node's port.
func ipvlanL2() Network {
	return Network{
		Name:              "ipvlan-l2",
		Summary:           "each pod has an ipvlan device over the node's underlay port, on its link, with the port's MAC",
		UsedBy:            []string{"Docker ipvlan", "CNI ipvlan with Multus", "Alibaba Terway"},
		Crossing:          CrossOnLink,
		SameNodeUnderSwap: true,
		Build: func(t Topology) Plan {
			d := newDraft(t, 0)
			d.ipvlanPods(2)
			for j := range t.Pods {
				d.onePrefix(j)
			}
			return d.finish(d.upDevice, d.downDevice, d.leavePort, d.enterPort)
		},
	}
}

// ipvlanL3 lets the node route for its pods, below their sub-devices.
func ipvlanL3() Network {
	return Network{
		Name:              "ipvlan-l3",
		Summary:           "each pod has an ipvlan device over the node's underlay port; the node's routes lead to the pods of other nodes",
		UsedBy:            []string{"Docker ipvlan in L3 mode", "CNI ipvlan with mode l3"},
		Crossing:          CrossOnLink,
		SameNodeUnderSwap: true,
		Build: func(t Topology) Plan {
			d := newDraft(t, 0)
			d.ipvlanPods(3)
			for j, p := range t.Pods {
				dev := d.podDevice(j)
				d.address(dev, mac(macPod, j), alone(p.Address))
				d.add(Route{Device: dev, To: everywhere(t.Family)})
			}
			for i := range t.Nodes {
				d.routesToOthers(i)
			}
			return d.finish(d.upDevice, d.downDevice, d.leavePort, d.enterPort)
		},
	}
}

// ipvlanPods gives the pods their devices.
func (d *draft) ipvlanPods(layer int) {
	for i, n := range d.t.Nodes {
		d.nodeAddress(i)
		for _, j := range d.t.podsOf(i) {
			d.quiet(InPod(j))
			d.add(IPVlan{Device: d.podDevice(j), Role: RolePod, Parent: Device{InNode(i), n.Device}, Layer: layer, MTU: d.mtu})
		}
	}
}
