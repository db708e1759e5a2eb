package network

import (
	"netdelta/result"
)

const (
	datapathDev = "ovs0"
	ovsTunnel   = "vxlan_sys"
	ovsNetwork  = 1 // the identifier in VXLAN
)

// ovs joins pods by the kernel's Open vSwitch, whose flows are all there from the start.
func ovs() Network {
	return Network{
		Name:              "ovs",
		Summary:           "one flat link over all nodes: each pod's veth is a port of an Open vSwitch kernel datapath with fixed flows, joined by VXLAN",
		UsedBy:            []string{"Weave Net fast datapath", "OVN-Kubernetes", "Antrea", "Kube-OVN"},
		Overhead:          vxlanOverhead,
		Crossing:          CrossByTunnel,
		SameNodeUnderSwap: true,
		Build: func(t Topology) Plan {
			d := newDraft(t, vxlanOverhead(t.Family))
			for i, n := range t.Nodes {
				d.nodeAddress(i)
				d.add(Vxlan{
					Device: Device{InNode(i), ovsTunnel}, Role: RoleEncapsulation, MAC: mac(macEncapsulation, i), Port: 4789, External: true,
					Local: n.Address.Addr(), Under: Device{InNode(i), n.Device}, MTU: d.mtu,
				})
				for _, j := range t.podsOf(i) {
					d.podVeth(j, mac(macNodeEnd, j))
				}
				d.datapath(i)
			}
			for j := range t.Pods {
				d.onePrefix(j)
				d.knowsAll(j)
			}
			leave, enter := d.throughTunnel(func(int, int) string { return ovsTunnel })
			return d.finishBetween(d.upVeth, d.downVeth, leave, enter)
		},
	}
}

// datapath makes the switch of a node: port 1 is the tunnel, and the node's pods follow.
func (d *draft) datapath(node int) {
	sw := Datapath{Device: Device{InNode(node), datapathDev}, Ports: []string{ovsTunnel}}
	const tunnel = 1
	for _, j := range d.t.podsOf(node) {
		sw.Ports = append(sw.Ports, d.nodeEnd(j).Name)
	}
	port := func(pod int) int {
		for k, j := range d.t.podsOf(node) {
			if j == pod {
				return tunnel + 1 + k
			}
		}
		return tunnel
	}
	local := d.t.Nodes[node].Address.Addr()
	for j, p := range d.t.Pods {
		to := mac(macPod, j)
		for _, from := range d.t.podsOf(node) {
			f := Flow{In: port(from), To: to, Family: d.t.Family, Out: port(j)}
			if p.Node != node {
				f.Through = &Encapsulate{ID: ovsNetwork, Local: local, Remote: d.t.Nodes[p.Node].Address.Addr()}
			}
			if from != j {
				sw.Flows = append(sw.Flows, f)
			}
		}
		if p.Node == node {
			sw.Flows = append(sw.Flows, Flow{In: tunnel, To: to, Family: d.t.Family, Out: port(j)})
		}
	}
	d.add(sw)
}

// knowsAll tells a pod the link addresses of all others: fixed flows lead no questions anywhere.
func (d *draft) knowsAll(pod int) {
	for j, p := range d.t.Pods {
		if j == pod {
			continue
		}
		d.add(Neighbour{Device: d.podDevice(pod), Address: p.Address, MAC: mac(macPod, j)})
		if d.t.Family == result.IPv6 {
			d.add(Neighbour{Device: d.podDevice(pod), Address: linkLocal(mac(macPod, j)).Addr(), MAC: mac(macPod, j)})
		}
	}
}
