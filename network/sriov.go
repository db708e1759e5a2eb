package network

// sriov gives each pod a part of a real network card.
func sriov() Network {
	return Network{
		Name:              "sriov",
		Summary:           "each pod has a virtual function of its node's network card, whose own switch joins them, past the node",
		UsedBy:            []string{"CNI sriov with Multus", "OpenStack direct ports", "telecom and HPC clusters"},
		SameNodeUnderSwap: true,
		Build: func(t Topology) Plan {
			d := newDraft(t, 0)
			// The cards are the underlay, whatever joins them.
			d.plan.Underlay = nil
			for i, n := range t.Nodes {
				card := Card{Device: Device{InNode(i), n.Device}, Role: RolePort, MTU: t.MTU, Functions: len(t.podsOf(i))}
				d.add(card)
				d.nodeAddress(i)
				for k, j := range t.podsOf(i) {
					d.quiet(InPod(j))
					d.add(Function{Device: d.podDevice(j), Role: RolePod, MAC: mac(macPod, j), Card: card.Device, Number: k, MTU: d.mtu})
				}
			}
			for j := range t.Pods {
				d.onePrefix(j)
			}
			// No device of the node sees what goes between a pod and the wire.
			none := func(int) []Hop { return nil }
			return d.finish(d.upDevice, d.downDevice, none, none)
		},
	}
}

// onCards refuses what only links that the lab made can be given.
func onCards(p Plan, t Topology) error {
	for _, op := range p.Ops {
		if _, is := op.(Card); !is {
			continue
		}
		c := t.Conditions
		for _, one := range []struct {
			asked     bool
			condition string
		}{
			{t.Rate > 0, "link.rate"}, {c.LinkDelay > 0, "link.delay"}, {c.LinkLoss > 0, "link.loss"}, {c.LinkCount > 1, "link.count"},
		} {
			if one.asked {
				return &NotPossibleError{p.Network, one.condition, "its packets cross real network cards, not the links of the lab"}
			}
		}
	}
	return nil
}
