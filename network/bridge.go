package network

// bridge joins pods and underlay to one link.
func bridge() Network {
	return Network{
		Name:              "bridge",
		Summary:           "each pod's veth and the node's underlay port are ports of a bridge: one flat link",
		UsedBy:            []string{"CNI bridge plugin without a gateway", "LXC", "OpenStack Linux bridge agent"},
		Crossing:          CrossOnLink,
		SameNodeUnderSwap: true,
		FromNode:          NodeBridges,
		Build: func(t Topology) Plan {
			d := newDraft(t, 0)
			for i, n := range t.Nodes {
				d.nodeBridge(i)
				d.add(Enslave{Device: Device{InNode(i), n.Device}, Bridge: bridgeDev})
				// A port of a bridge has no address; the bridge stands in for it.
				d.address(Device{InNode(i), bridgeDev}, mac(macBridge, i), n.Address)
				d.bridgedPods(i)
			}
			for j := range t.Pods {
				d.onePrefix(j)
			}
			return d.finish(d.upVeth, d.downVeth, d.leavePort, d.enterPort)
		},
	}
}
