package survey

import (
	"cmp"
	"context"
	"net/netip"
	"slices"

	"netdelta/testbed"
)

// hardware is the kind of a device that the kernel did not make.
const hardware = "device"

// inspect looks at the devices of the nodes on which pods are scheduled.
func (l *looker) inspect(ctx context.Context) {
	if l.options.Inspect == nil {
		return
	}
	var names []string
	for _, n := range l.survey.Nodes {
		if n.open() {
			names = append(names, n.Name)
		}
	}
	devices, err := l.options.Inspect(ctx, names)
	if err != nil {
		l.gap("the devices of nodes", "", err.Error())
	}
	l.survey.Devices = len(devices) > 0
	for i := range l.survey.Nodes {
		n := &l.survey.Nodes[i]
		n.Devices = devices[n.Name]
	}
	if unseen := slices.DeleteFunc(names, func(name string) bool { _, seen := devices[name]; return seen }); len(unseen) > 0 && err == nil {
		l.gap("the devices of "+some(unseen), "", "only so many nodes are looked at")
	}
	confirm(&l.survey)
}

// open says that pods of a run can be scheduled there.
func (n Node) open() bool { return n.Ready && n.Shut == "" }

// confirm holds what the cluster's objects say of the network against the devices of its nodes.
func confirm(s *Survey) {
	if !s.Devices {
		return
	}
	network := &s.Network
	network.MTU = cmp.Or(network.MTU, s.podMTU())
	if s.Services.Mode == "" && s.hasDevice(func(d testbed.Interface) bool { return d.Name == "kube-ipvs0" }) {
		s.Services.Mode, s.Services.By = "ipvs", "the device kube-ipvs0 of nodes"
	}
	if network.Plugin != "flannel" || network.Mode != "vxlan" {
		return
	}
	if s.hasDevice(func(d testbed.Interface) bool { return d.Kind == "vxlan" }) {
		network.Doubt = ""
		network.By = append(network.By, "the devices of nodes")
		return
	}
	network.Plugin, network.Mode, network.Encapsulation, network.OnlyAcross = "bridge", "routes", "none", false
	network.By = []string{"no node has a VXLAN device, though annotations of flannel are there"}
	network.Doubt = "flannel's annotations stayed behind; routes between nodes can't be told from a plugin that leaves no trace"
}

func (s Survey) hasDevice(is func(testbed.Interface) bool) bool {
	return slices.ContainsFunc(s.Nodes, func(n Node) bool { return slices.ContainsFunc(n.Devices, is) })
}

// podMTU is the smallest of the devices that lead to pods: their other ends are the pods' own. It is 0 where there are none.
func (s Survey) podMTU() int {
	smallest := 0
	for _, n := range s.Nodes {
		card, _ := n.Card() // it is one of them where nodes are namespaces themselves
		for _, d := range n.Devices {
			if (d.Kind == "veth" || d.Kind == "netkit") && d.Name != card.Name && (smallest == 0 || d.MTU < smallest) {
				smallest = d.MTU
			}
		}
	}
	return smallest
}

// Card is the device that has the node's own address; false where it wasn't seen.
func (n Node) Card() (testbed.Interface, bool) {
	for _, a := range n.Addresses {
		address, err := netip.ParseAddr(a)
		if err != nil {
			continue
		}
		for _, d := range n.Devices {
			if slices.ContainsFunc(d.Addresses, func(p netip.Prefix) bool { return p.Addr() == address }) {
				return d, true
			}
		}
	}
	return testbed.Interface{}, false
}
