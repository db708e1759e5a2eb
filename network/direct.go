package network

import "fmt"

// host puts the pods on their node's own stack: the ceiling against which every other network is compared.
func host() Network {
	return Network{
		Name:    "host",
		Summary: "pods share their node's network namespace; under live swap each has an underlay port of its own",
		UsedBy:  []string{"Docker --network host", "Kubernetes hostNetwork"},
		// Under live swap the pods' own ports are next to the nodes' ports.
		Crossing:        CrossAsNodes,
		OnLinkUnderSwap: true,
		// Processes of one node speak over lo; pods with a namespace each can't.
		NoSameNodeUnderSwap: true,
		FromNode:            NodeItself,
		Build: drafted(nil, func(d *draft) Plan {
			d.eachNode(d.nodeAddress)
			if d.t.PodsOutlive {
				return hostPorts(d)
			}
			return hostShared(d)
		}),
	}
}

// hostShared leaves the pods in their nodes' namespaces.
func hostShared(d *draft) Plan {
	for j := range d.plan.Pods {
		e := &d.plan.Pods[j]
		n := d.t.Nodes[e.Node]
		e.In, e.Address, e.Device = InNode(e.Node), n.Address.Addr(), n.Device
	}
	d.plan.path = func(from, to int, _ Protocol) []Hop {
		a, b := d.t.Pods[from].Node, d.t.Pods[to].Node
		if a != b {
			return append(d.port(a, b), turned(d.port(b, a))...)
		}
		lo := Device{InNode(a), "lo"}
		return []Hop{sends(lo, RoleLoopback), receives(lo, RoleLoopback)}
	}
	return d.plan
}

// hostPorts gives each pod a port of the underlay, as if it were a node.
func hostPorts(d *draft) Plan {
	for j, p := range d.t.Pods {
		d.quiet(InPod(j))
		d.underlayPort(d.podDevice(j), mac(macPod, j), p.Name, len(d.t.Nodes)+j, p.Node)
		d.onePrefix(j)
	}
	return d.finish(d.device, d.nothing)
}

// bridge joins pods and underlay to one link.
func bridge() Network {
	return Network{
		Name:     "bridge",
		Summary:  "each pod's veth and the node's underlay port are ports of a bridge: one flat link",
		UsedBy:   []string{"CNI bridge plugin without a gateway", "LXC", "OpenStack Linux bridge agent"},
		Crossing: CrossOnLink,
		FromNode: NodeBridges,
		Build: drafted(nil, func(d *draft) Plan {
			d.eachNode(d.nodeBridge, d.bridgedPort, d.bridgedPods)
			d.eachPod(d.onePrefix)
			return d.finish(d.veth, d.port)
		}),
	}
}

// bridgedPort makes a node's underlay port a port of its bridge, which takes over the node's address.
func (d *draft) bridgedPort(node int) {
	n := d.t.Nodes[node]
	d.add(Enslave{Device: Device{InNode(node), n.Device}, Bridge: bridgeDev})
	d.address(Device{InNode(node), bridgeDev}, mac(macBridge, node), n.Address)
}

// bridgeNAT hides the pods behind their node's address.
func bridgeNAT() Network {
	return Network{
		Name:     "bridge-nat",
		Summary:  "pods on a private bridge of their node, masqueraded on the way out; from other nodes by ports published at the node's address",
		UsedBy:   []string{"Docker default bridge", "Podman", "CNI bridge with ipMasq and portmap"},
		Reach:    ByNode,
		Crossing: CrossAsNodes,
		FromNode: NodeRoutes,
		// Docker sets it itself, and kubeadm asks for it.
		BridgeNetfilter: true,
		Build: drafted(nil, func(d *draft) Plan {
			d.eachNode(d.nodeAddress, d.nodeBridge, d.gatewayAddress, d.forwarding, d.bridgedPods, d.publish)
			d.eachPod(d.behindGateway)
			return d.finish(d.veth, d.throughBridge(d.port))
		}),
	}
}

// publish adds the rules that Docker gives to its host, in their order: the node's ports lead to its pods, and the pods hide behind its
// address. Packets between pods pass most of them.
func (d *draft) publish(node int) {
	n := d.t.Nodes[node]
	own := byFamily(d.t.Family, "127.0.0.0/8", "::1/128")
	filter := []Line{
		":INPUT ACCEPT [0:0]", ":FORWARD DROP [0:0]", ":OUTPUT ACCEPT [0:0]",
		":DOCKER - [0:0]", ":DOCKER-ISOLATION-STAGE-1 - [0:0]", ":DOCKER-ISOLATION-STAGE-2 - [0:0]", ":DOCKER-USER - [0:0]",
		"-A FORWARD -j DOCKER-USER",
		"-A FORWARD -j DOCKER-ISOLATION-STAGE-1",
		"-A FORWARD -o br0 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT",
		"-A FORWARD -o br0 -j DOCKER",
		"-A FORWARD -i br0 ! -o br0 -j ACCEPT",
		"-A FORWARD -i br0 -o br0 -j ACCEPT",
		"-A DOCKER-ISOLATION-STAGE-1 -i br0 ! -o br0 -j DOCKER-ISOLATION-STAGE-2",
		"-A DOCKER-ISOLATION-STAGE-1 -j RETURN",
		"-A DOCKER-ISOLATION-STAGE-2 -o br0 -j DROP",
		"-A DOCKER-ISOLATION-STAGE-2 -j RETURN",
		"-A DOCKER-USER -j RETURN",
	}
	nat := []Line{
		":PREROUTING ACCEPT [0:0]", ":INPUT ACCEPT [0:0]", ":OUTPUT ACCEPT [0:0]", ":POSTROUTING ACCEPT [0:0]", ":DOCKER - [0:0]",
		"-A PREROUTING -m addrtype --dst-type LOCAL -j DOCKER",
		Line("-A OUTPUT ! -d " + own + " -m addrtype --dst-type LOCAL -j DOCKER"),
		Line("-A POSTROUTING -s " + n.PodPrefix.Masked().String() + " ! -o br0 -j MASQUERADE"),
		"-A DOCKER -i br0 -j RETURN",
	}
	for _, j := range d.t.podsOf(node) {
		p := d.t.Pods[j]
		for _, protocol := range []string{"tcp", "udp"} {
			ports := fmt.Sprintf("-p %s -m %s --dport %d:%d", protocol, protocol, p.FirstPort, p.LastPort)
			filter = append(filter, Line(fmt.Sprintf("-A DOCKER -d %s ! -i br0 -o br0 %s -j ACCEPT", alone(p.Address), ports)))
			nat = append(nat, Line(fmt.Sprintf("-A DOCKER -d %s ! -i br0 %s -j DNAT --to-destination %s", alone(n.Address.Addr()), ports, p.Address)))
		}
	}
	d.add(
		IPTables{In: InNode(node), Family: d.t.Family, Table: "filter", Lines: filter},
		IPTables{In: InNode(node), Family: d.t.Family, Table: "nat", Lines: nat},
	)
}

// macvlan gives each pod a sub-device of the node's port.
func macvlan() Network {
	return Network{
		Name:     "macvlan",
		Summary:  "each pod has a macvlan device over the node's underlay port, in bridge mode, with a MAC of its own",
		UsedBy:   []string{"Docker macvlan", "CNI macvlan with Multus"},
		Crossing: CrossOnLink,
		Build: drafted(nil, func(d *draft) Plan {
			d.eachNode(d.nodeAddress, d.forPods(func(pod int) {
				d.quiet(InPod(pod))
				d.add(Macvlan{Device: d.podDevice(pod), Role: RolePod, MAC: mac(macPod, pod), Parent: d.portOf(d.t.Pods[pod].Node), MTU: d.mtu})
				d.onePrefix(pod)
			}))
			return d.finish(d.device, d.port)
		}),
	}
}

// ipvlanL2 gives each pod a sub-device that shares the MAC of the node's port.
func ipvlanL2() Network {
	return Network{
		Name:     "ipvlan-l2",
		Summary:  "each pod has an ipvlan device over the node's underlay port, on its link, with the port's MAC",
		UsedBy:   []string{"Docker ipvlan", "CNI ipvlan with Multus", "Alibaba Terway"},
		Crossing: CrossOnLink,
		Build: drafted(nil, func(d *draft) Plan {
			d.eachNode(d.nodeAddress, d.forPods(d.ipvlanPod(2)))
			d.eachPod(d.onePrefix)
			return d.finish(d.device, d.port)
		}),
	}
}

// ipvlanL3 lets the node route for its pods, below their sub-devices.
func ipvlanL3() Network {
	return Network{
		Name:     "ipvlan-l3",
		Summary:  "each pod has an ipvlan device over the node's underlay port; the node's routes lead to the pods of other nodes",
		UsedBy:   []string{"Docker ipvlan in L3 mode", "CNI ipvlan with mode l3"},
		Crossing: CrossOnLink,
		Build: drafted(nil, func(d *draft) Plan {
			d.eachNode(d.nodeAddress, d.forPods(d.ipvlanPod(3)))
			for j, p := range d.t.Pods {
				dev := d.podDevice(j)
				d.address(dev, mac(macPod, j), alone(p.Address))
				d.add(Route{Device: dev, To: everywhere(d.t.Family)})
			}
			d.eachNode(d.routesToOthers)
			return d.finish(d.device, d.port)
		}),
	}
}

// ipvlanPod gives a pod its device.
func (d *draft) ipvlanPod(layer int) func(pod int) {
	return func(pod int) {
		d.quiet(InPod(pod))
		d.add(IPVlan{Device: d.podDevice(pod), Role: RolePod, Parent: d.portOf(d.t.Pods[pod].Node), Layer: layer, MTU: d.mtu})
	}
}

// sriov gives each pod a part of a real network card.
func sriov() Network {
	return Network{
		Name:    "sriov",
		Summary: "each pod has a virtual function of its node's network card, whose own switch joins them, past the node",
		UsedBy:  []string{"CNI sriov with Multus", "OpenStack direct ports", "telecom and HPC clusters"},
		Build: drafted(nil, func(d *draft) Plan {
			// The cards are the underlay, whatever joins them.
			d.plan.Underlay = nil
			for i := range d.t.Nodes {
				pods := d.t.podsOf(i)
				d.add(Card{Device: d.portOf(i), Role: RolePort, MTU: d.t.MTU, Functions: len(pods)})
				d.nodeAddress(i)
				for k, j := range pods {
					d.quiet(InPod(j))
					d.add(Function{Device: d.podDevice(j), Role: RolePod, MAC: mac(macPod, j), Card: d.portOf(i), Number: k, MTU: d.mtu})
				}
			}
			d.eachPod(d.onePrefix)
			// No device of the node sees packets between a pod and the wire.
			return d.finish(d.device, d.nothing)
		}),
	}
}

// Metal is the name of the network of nodes as they are found.
const Metal = "metal"

// Found returns the networks of nodes that are used as they are found: nothing is built. They need a topology whose nodes have the devices
// and addresses of real machines, and so are not in the catalogue.
func Found() []Network {
	return []Network{{
		Name:        Metal,
		Summary:     "processes in the servers' own network namespaces, at their own addresses: nothing in between",
		UsedBy:      []string{"programs without containers"},
		OwnPods:     true,
		SharesPorts: true,
		Crossing:    CrossAsNodes,
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
