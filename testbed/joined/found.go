package joined

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/unit"
)

// Own is a machine's own network: the card that leads to the other machines, and the card's addresses.
type Own struct {
	Card      string
	Addresses []netip.Prefix
	MTU       unit.Bytes
}

// foundPorts is how many ports a pod has on a node that is used as it is found. Testbeds share the node, and each has ports of its own,
// from firstPort up to where clusters take ports of services from, and above these the kernel ports of clients.
const (
	foundPorts = 100
	firstPort  = 20000
	lastPort   = 29999
)

// takePorts gives the pods of a testbed ports that no other testbed's pods have there, and returns their number for giveBackPorts.
func (d *Driver) takePorts(t *network.Topology) (slot int, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for d.listening[slot] {
		slot++
	}
	each := len(t.Pods) / len(t.Nodes)
	first := firstPort + slot*each*foundPorts
	if first+each*foundPorts > lastPort {
		return 0, fmt.Errorf("all ports from %d to %d are taken by other pods on the same nodes: fewer networks can stand side by side", firstPort, lastPort)
	}
	d.listening[slot] = true
	for j := range t.Pods {
		at := first + j%each*foundPorts
		t.Pods[j].FirstPort, t.Pods[j].LastPort = uint16(at), uint16(at+foundPorts-1)
	}
	return slot, nil
}

func (d *Driver) giveBackPorts(slot int) {
	d.mu.Lock()
	delete(d.listening, slot)
	d.mu.Unlock()
}

// found puts the machines' own cards and addresses into a topology.
func (d *Driver) found(spec testbed.Spec, t *network.Topology) error {
	refused := func(condition, why string) error {
		return &network.NotPossibleError{Network: spec.Network, Condition: condition, Why: why}
	}
	if spec.Conditions != (result.Conditions{}) {
		return refused("conditions of the network", "nothing of the machines' own network is changed")
	}
	if len(t.Nodes) > len(d.nodes) {
		return refused(fmt.Sprintf("%d nodes", len(t.Nodes)), fmt.Sprintf("there are %d machines, and none is two nodes of its own network", len(d.nodes)))
	}
	for i := range t.Nodes {
		at := d.at(spec.Target, i)
		own := d.nodes[at].Own
		if own == nil {
			return refused("these nodes", "the machines' own cards are not used, or were taken")
		}
		if spec.Target != "" && spec.Link.MTU == 0 && i == 0 {
			t.MTU = own.MTU // nothing is built that had one
		}
		if t.MTU != own.MTU {
			return refused(fmt.Sprintf("mtu=%d", t.MTU), fmt.Sprintf("the card %s of node%d has an MTU of %d, and stays as it is", own.Card, at, own.MTU))
		}
		address := netip.Prefix{}
		for _, a := range own.Addresses {
			if a.Addr().Is6() == (spec.Family == result.IPv6) && !a.Addr().IsLinkLocalUnicast() && !address.IsValid() {
				address = a
			}
		}
		if !address.IsValid() {
			return refused("family="+string(cmp.Or(spec.Family, result.IPv4)), fmt.Sprintf("the card %s of node%d has no such address", own.Card, at))
		}
		t.Nodes[i].Device, t.Nodes[i].Address = own.Card, address
	}
	return nil
}

// hostNetwork is the network whose pods are in the namespace of their node, which is on its wire.
const hostNetwork = "host"

// Locate is testbed.Targets.Locate: an endpoint stands on the machine that is known by its host.
func (d *Driver) Locate(_ context.Context, host string) (testbed.Site, error) {
	if a, err := netip.ParseAddr(host); host == "localhost" || err == nil && a.IsLoopback() {
		return testbed.Site{}, fmt.Errorf("%s is another place on each machine; name the one that it is on by an address that the others reach", host)
	}
	on := d.stands(host)
	if on < 0 {
		why := "none of the machines is known by the name or address " + host
		return testbed.Site{NoSameNode: why, MaybeSameNode: why}, nil
	}
	site := testbed.Site{Nodes: []string{d.nodes[on].Hosts[0]}}
	if len(d.nodes) == 1 {
		site.MaybeSameNode = "there is one machine"
	}
	return site, nil
}

// stands is the number of the machine that an endpoint is on, -1 where that is not known.
func (d *Driver) stands(host string) int {
	return slices.IndexFunc(d.nodes, func(n Node) bool {
		return slices.ContainsFunc(n.Hosts, func(h string) bool { return strings.EqualFold(h, host) })
	})
}

// at is the number of the machine that a node of a testbed is on. The first node is the one that the testbed's target stands on. Where that is
// none it is the last one, so that clients on another node are on the first machine.
func (d *Driver) at(target string, node int) int {
	if target == "" {
		return node
	}
	first := d.stands(target)
	if first < 0 {
		first = len(d.nodes) - 1
	}
	switch {
	case node == 0:
		return first
	case node <= first:
		return node - 1
	}
	return node
}

// reaches refuses a network whose pods can't reach the target of a testbed. Packets of pods get out of it by their machine's own
// network, and by a wire whose address is of the target's own subnet.
func (d *Driver) reaches(spec testbed.Spec, name string) error {
	if spec.Target == "" {
		return nil
	}
	lacks := func(feature, need, fix string) error {
		return &testbed.UnsupportedError{Feature: feature + " with a target", Need: need, Fix: fix}
	}
	switch {
	case spec.PodsOutlive:
		return lacks("network "+name+" in blocks", "pods that keep their address", "measure it without --blocks")
	case spec.Conditions.Plain() != (result.Conditions{}):
		return lacks("a condition of the network", "a server of netdelta's own", "leave the conditions out, or the target")
	case name == network.Metal:
		return nil
	case name != hostNetwork:
		return lacks("network "+name, "a server of netdelta's own behind it", "measure networks metal and host, which say where clients stand")
	case d.shared.Addresses == nil || d.whole(): // a single machine has no wires
		return lacks("network "+name, "addresses for clients that the target answers", "give some of its subnet (--nic macvlan:CARD,ADDRESS/LENGTH), or measure network metal")
	}
	at, err := netip.ParseAddr(spec.Target)
	if own := d.shared.Addresses[0][0]; err != nil || !own.Contains(at) {
		return lacks("network "+name, fmt.Sprintf("a target whose address is in the subnet of the nodes' addresses, %s", own.Masked()), "name it by its address there, or measure network metal")
	}
	return nil
}

// serves refuses workloads whose servers and clients take more machines than there are.
func (d *Driver) serves(spec testbed.Spec) error {
	need := spec.Peers.Nodes()
	if d.whole() || need <= len(d.nodes) {
		return nil
	}
	return &testbed.UnsupportedError{
		Feature: fmt.Sprintf("a workload with %d servers on %d machines", spec.Peers.Count, len(d.nodes)), Need: fmt.Sprintf("%d machines, one for each server and each client", need),
		Fix: "name more of them, or one alone, which has the whole lab",
	}
}
