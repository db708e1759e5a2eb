package joined

import (
	"cmp"
	"fmt"
	"net/netip"

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
