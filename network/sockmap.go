package network

// sockmap is routed, with the TCP sockets of pods on one node joined.
func sockmap() Network {
	return Network{
		Name:              "sockmap",
		Summary:           "TCP sockets of pods on one node are joined by eBPF, past all devices; all else is routed",
		UsedBy:            []string{"Cilium (formerly, sockops)", "Merbridge", "Istio and Kuma with Merbridge"},
		Crossing:          CrossByRoute,
		SameNodeUnderSwap: true,
		Build: func(t Topology) Plan {
			d := newDraft(t, 0)
			join := JoinSockets{}
			for i := range t.Nodes {
				d.nodeAddress(i)
				d.forwarding(i)
				for _, j := range t.podsOf(i) {
					d.routedPod(j)
					join.Pods = append(join.Pods, JoinedPod{Address: t.Pods[j].Address, Node: i})
				}
				d.routesToOthers(i)
			}
			d.add(join)
			p := d.finish(d.upVeth, d.downVeth, d.leavePort, d.enterPort)
			routed := p.path
			p.path = func(from, to int, protocol Protocol) []Hop {
				if protocol == TCP && t.Pods[from].Node == t.Pods[to].Node {
					return nil
				}
				return routed(from, to, protocol)
			}
			return p
		},
	}
}
