package network

// host puts the pods on their node's own stack: the ceiling against which every other network is held.
func host() Network {
	return Network{
		Name:    "host",
		Summary: "pods share their node's network namespace; under live swap each has an underlay port of its own",
		UsedBy:  []string{"Docker --network host", "Kubernetes hostNetwork"},
		// Under live swap the pods' own ports are beside those of the nodes.
		Crossing:        CrossAsNodes,
		OnLinkUnderSwap: true,
		// Processes of one node speak over lo; pods with a namespace each can't.
		SameNodeUnderSwap: false,
		FromNode:          NodeItself,
		Build: func(t Topology) Plan {
			d := newDraft(t, 0)
			if t.PodsOutlive {
				return hostPorts(d)
			}
			return hostShared(d)
		},
	}
}

// hostShared leaves the pods in their nodes' namespaces.
func hostShared(d *draft) Plan {
	for i := range d.t.Nodes {
		d.nodeAddress(i)
	}
	for j := range d.plan.Pods {
		e := &d.plan.Pods[j]
		n := d.t.Nodes[e.Node]
		e.In, e.Address, e.Device = InNode(e.Node), n.Address.Addr(), n.Device
	}
	d.plan.path = func(from, to int, _ Protocol) []Hop {
		a, b := d.t.Pods[from].Node, d.t.Pods[to].Node
		if a != b {
			return append(d.leavePort(a), d.enterPort(b)...)
		}
		lo := Device{InNode(a), "lo"}
		return []Hop{sends(lo, RoleLoopback), receives(lo, RoleLoopback)}
	}
	return d.plan
}

// hostPorts gives each pod a port of the underlay, as if it were a node.
func hostPorts(d *draft) Plan {
	for i := range d.t.Nodes {
		d.nodeAddress(i)
	}
	for j, p := range d.t.Pods {
		d.quiet(InPod(j))
		d.port(d.podDevice(j), mac(macPod, j), p.Name, len(d.t.Nodes)+j)
		d.onePrefix(j)
	}
	none := func(int) []Hop { return nil }
	return d.finish(d.upDevice, d.downDevice, none, none)
}
