package network_test

import (
	"errors"
	"slices"
	"testing"

	"netdelta/network"
	"netdelta/result"
)

// TestPart: the parts of a plan's nodes are together the whole but for the switch, none has what is another's, and each gets its
// port by a card.
func TestPart(t *testing.T) {
	for _, family := range []result.Family{result.IPv4, result.IPv6} {
		topology, err := network.NewTopology(network.Layout{Nodes: 2, PodsPerNode: 2, Family: family, MTU: 9000})
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range network.Catalogue() {
			whole, err := n.Plan(topology)
			if err != nil {
				t.Fatal(err)
			}
			all, err := whole.Part(network.Everywhere)
			if err != nil {
				t.Logf("%s is all of a piece: %v", n.Name, err)
				continue
			}
			settings, cards, ops := 0, 0, map[string]bool{}
			for node := range topology.Nodes {
				part, err := whole.Part(node)
				if err != nil {
					t.Fatal(err)
				}
				settings += len(part.Settings)
				for _, op := range part.Ops {
					ops[op.String()] = true
				}
				for _, op := range part.Underlay {
					if u, is := op.(network.Uplink); is {
						cards++
						if u.In != network.InNode(node) || u.MTU != 9000 {
							t.Errorf("%s: node %d gets %s", n.Name, node, u)
						}
					}
				}
				for _, s := range part.Spaces() {
					if s.Kind == network.SwitchSpace || s.Kind == network.NodeSpace && s.Index != node ||
						s.Kind == network.PodSpace && topology.Pods[s.Index].Node != node {
						t.Errorf("%s: the part of node %d makes %s", n.Name, node, s)
					}
				}
			}
			for _, op := range whole.Ops {
				if !ops[op.String()] {
					t.Errorf("%s: no part has %s", n.Name, op)
				}
			}
			if cards != len(topology.Nodes) || len(all.Ops) != len(whole.Ops) || settings != len(all.Settings) {
				t.Errorf("%s: %d cards for %d nodes, %d operations of %d, %d settings of %d", n.Name, cards, len(topology.Nodes), len(all.Ops),
					len(whole.Ops), settings, len(all.Settings))
			}
			if slices.Contains(all.Spaces(), network.InSwitch()) || !slices.Contains(whole.Spaces(), network.InSwitch()) {
				t.Errorf("%s: the switch is not in the whole alone", n.Name)
			}
		}
	}
}

// TestPartOfBonds: the links of a node's bond are cards of its machine, in modes that need nothing of the other bonds over these cards.
func TestPartOfBonds(t *testing.T) {
	for _, mode := range network.BondModes() {
		topology, err := network.NewTopology(network.Layout{Nodes: 2, PodsPerNode: 1, Segment: 7, Conditions: result.Conditions{LinkCount: 2, BondMode: mode, NodeLinks: "node1:3x1Gbit/s"}})
		if err != nil {
			t.Fatal(err)
		}
		n, err := network.Find(network.Catalogue(), "host")
		if err != nil {
			t.Fatal(err)
		}
		p, err := n.Plan(topology)
		if err != nil {
			t.Fatal(err)
		}
		part, err := p.Part(1)
		if mode == network.ModeLACP || mode == network.ModeBroadcast {
			if _, impossible := errors.AsType[*network.NotPossibleError](err); !impossible {
				t.Errorf("%s: %v", mode, err)
			}
			continue
		}
		cards, bonds := network.Of[network.Uplink](part.Underlay), network.Of[network.Bond](part.Underlay)
		if err != nil || len(cards) != 3 || len(bonds) != 1 || len(bonds[0].Links) != 3 || bonds[0].In != network.InNode(1) {
			t.Errorf("%s: the cards %v and the bonds %v, %v", mode, cards, bonds, err)
			continue
		}
		for k, c := range cards {
			if c.Number != k || c.Name != bonds[0].Links[k] || c.MAC[4] != 7 {
				t.Errorf("%s: link %d is %s", mode, k, c)
			}
		}
		if rates := network.Of[network.Shape](part.Underlay); len(rates) != 3 {
			t.Errorf("%s: the links have the rates %v", mode, rates)
		}
	}
}
