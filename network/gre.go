package network

import (
	"strconv"

	"netdelta/result"
	"netdelta/unit"
)

// greOverhead is what GRE adds to a packet: its header of 4 bytes, without key and checksum, and another IP header. RFC 2784,
// RFC 7676.
func greOverhead(underlay result.Family) unit.Bytes { return 4 + ipHeader(underlay) }

// gre routes into devices that put IP packets into GRE, one for each other node.
func gre() Network {
	return Network{
		Name:              "gre",
		Summary:           "each pod is alone on a veth with its node as gateway; nodes route to each other's pods through GRE, a device for each node",
		UsedBy:            []string{"Antrea with GRE", "Open vSwitch with GRE", "Romana"},
		Overhead:          greOverhead,
		Crossing:          CrossByTunnel,
		SameNodeUnderSwap: true,
		Build: func(t Topology) Plan {
			d := newDraft(t, greOverhead(t.Family))
			for i := range t.Nodes {
				d.routingNode(i)
				for k, other := range t.Nodes {
					if k != i {
						d.tunnelTo(i, k, Tunnel{Device: Device{InNode(i), greDev(i, k)}, Kind: GRE}, other)
					}
				}
			}
			leave, enter := d.throughTunnel(greDev)
			return d.finishBetween(d.upVeth, d.downVeth, leave, enter)
		},
	}
}

// greDev is the name of a node's tunnel to another. The kernel itself makes a gre0 where the module is loaded.
func greDev(_, other int) string { return "grenode" + strconv.Itoa(other) }
