package network

// bridgeNAT hides the pods behind their node's address.
func bridgeNAT() Network {
	return Network{
		Name:              "bridge-nat",
		Summary:           "pods on a private bridge of their node, masqueraded on the way out, with ports published on the node's address",
		UsedBy:            []string{"Docker default bridge", "Podman", "CNI bridge with ipMasq and portmap"},
		Reach:             ByNode,
		Crossing:          CrossAsNodes,
		SameNodeUnderSwap: true,
		Build: func(t Topology) Plan {
			d := newDraft(t, 0)
			for i := range t.Nodes {
				d.nodeAddress(i)
				d.nodeBridge(i)
				d.gatewayAddress(i)
				d.forwarding(i)
				d.bridgedPods(i)
				d.add(publish(t, i))
			}
			for j := range t.Pods {
				d.behindGateway(j)
			}
			up := func(pod int) []Hop {
				return append(d.upVeth(pod), receives(Device{InNode(t.Pods[pod].Node), bridgeDev}, RoleBridge))
			}
			down := func(pod int) []Hop {
				return append([]Hop{sends(Device{InNode(t.Pods[pod].Node), bridgeDev}, RoleBridge)}, d.downVeth(pod)...)
			}
			return d.finish(up, down, d.leavePort, d.enterPort)
		},
	}
}

// publish is the firewall that Docker gives to a node: its ports lead to the pods, and the pods hide behind its address.
func publish(t Topology, node int) Rules {
	n := t.Nodes[node]
	pods := n.PodPrefix.Masked()
	into := Chain{Name: "into", NAT: true, Hook: Prerouting, Priority: -100}
	pass := Chain{Name: "pass", Hook: Forwarding, Drop: true, Rules: []Rule{{Out: bridgeDev, Established: true}}}
	for _, j := range t.podsOf(node) {
		p := t.Pods[j]
		for _, proto := range []Protocol{TCP, UDP} {
			to := Rule{Protocol: proto, FirstPort: p.FirstPort, LastPort: p.LastPort}
			published, allowed := to, to
			published.To, published.Do, published.Destination = alone(n.Address.Addr()), TranslateDestination, p.Address
			allowed.Out, allowed.To = bridgeDev, alone(p.Address)
			into.Rules = append(into.Rules, published)
			pass.Rules = append(pass.Rules, allowed)
		}
	}
	pass.Rules = append(pass.Rules, Rule{In: bridgeDev, NotOut: bridgeDev}, Rule{In: bridgeDev, Out: bridgeDev})
	out := Chain{Name: "out", NAT: true, Hook: Postrouting, Priority: 100, Rules: []Rule{
		{From: pods, NotOut: bridgeDev, Do: Masquerade},
		// A pod that calls a published port of its own node: without this the answer would go straight to the caller over
		// the bridge, from an address that it never called.
		{From: pods, To: pods, Out: bridgeDev, Do: Masquerade},
	}}
	return Rules{In: InNode(node), Family: t.Family, Table: "netdelta", Chains: []Chain{into, pass, out}}
}
