package network

// Metal is the name of the network of nodes as they are found.
const Metal = "metal"

// Found returns the networks of nodes that are used as they are found: nothing is built. They need a topology whose nodes have the devices
// and addresses of real machines, and so are not in the catalogue.
func Found() []Network {
	return []Network{{
		Name:     Metal,
		Summary:  "processes in the servers' own network namespaces, at their own addresses: nothing in between",
		UsedBy:   []string{"programs without containers"},
		OwnPods:  true,
		Crossing: CrossAsNodes,
		Build: func(t Topology) Plan {
			p := Plan{Found: true}
			for _, n := range t.Nodes {
				p.Nodes = append(p.Nodes, n.Address.Addr())
			}
			for _, pod := range t.Pods {
				n := t.Nodes[pod.Node]
				p.Pods = append(p.Pods, Endpoint{In: InNode(pod.Node), Address: n.Address.Addr(), Node: pod.Node, Device: n.Device})
			}
			p.path = func(from, to int, _ Protocol) []Hop {
				a, b := p.Pods[from], p.Pods[to]
				if a.Node != b.Node {
					return []Hop{sends(Device{a.In, a.Device}, RolePort), receives(Device{b.In, b.Device}, RolePort)}
				}
				lo := Device{a.In, "lo"}
				return []Hop{sends(lo, RoleLoopback), receives(lo, RoleLoopback)}
			}
			return p
		},
	}}
}
