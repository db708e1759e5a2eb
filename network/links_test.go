package network_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"netdelta/network"
	"netdelta/result"
)

// drawLinks draws conditions of links.
func drawLinks(t *rapid.T) result.Conditions {
	return result.Conditions{
		LinkDelay: time.Duration(rapid.SampledFrom([]int{0, 1, 10_000}).Draw(t, "delay")) * time.Millisecond,
		LinkLoss:  rapid.SampledFrom([]float64{0, 0.001, 0.5}).Draw(t, "loss"),
		LinkCount: rapid.IntRange(0, network.MaxLinks).Draw(t, "links"),
		NodeLinks: rapid.SampledFrom([]string{"", "node0:2x25Gbit/s", "node1:1Gbit/s@1ms"}).Draw(t, "nodes"),
		BondMode:  rapid.SampledFrom(append(network.BondModes(), "")).Draw(t, "mode"),
		BondHash:  rapid.SampledFrom(append(network.BondHashes(), "")).Draw(t, "hash"),
		TSO:       rapid.SampledFrom([]result.Switch{"", result.On, result.Off}).Draw(t, "tso"),
	}
}

func TestBadLinks(t *testing.T) {
	for _, c := range []struct {
		conditions result.Conditions
		says       string
	}{
		{result.Conditions{LinkDelay: -1}, "link delay of -1ns"},
		{result.Conditions{LinkDelay: network.MaxDelay + 1}, "need 0 to 10s"},
		{result.Conditions{LinkLoss: 1}, "link loss of 1"},
		{result.Conditions{LinkLoss: -0.1}, "link loss of -0.1"},
		{result.Conditions{LinkCount: network.MaxLinks + 1}, "17 links"},
		{result.Conditions{NodeLinks: "node0:slow"}, `links of single nodes: "node0:slow"`},
		{result.Conditions{LinkCount: 2, BondMode: "lacp"}, "known are 802.3ad"},
		{result.Conditions{LinkCount: 2, BondHash: "layer4"}, "known are layer2"},
	} {
		_, err := network.NewTopology(network.Layout{Nodes: 2, PodsPerNode: 1, Conditions: c.conditions})
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: got error %v, want one that says %q", c.conditions, err, c.says)
		}
	}
}

// Each way between two nodes is delayed once, whatever the network and however many the links: what stands on the near side
// of a link does not stand on the other.
func TestEachWayIsDelayedOnce(t *testing.T) {
	for _, n := range network.Catalogue() {
		for _, links := range []int{1, 3} {
			top := topology(t, network.Layout{Conditions: result.Conditions{LinkDelay: time.Millisecond, LinkCount: links}})
			p, err := n.Plan(top)
			if n.Name == "sriov" || n.Name == "xdp" {
				var not *network.NotPossibleError
				if !errors.As(err, &not) {
					t.Errorf("%s, whose packets can't be delayed: got error %v", n.Name, err)
				}
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			delayed := map[network.Space]int{}
			for _, op := range append(p.Underlay, p.Ops...) {
				if i, ok := op.(network.Impair); ok {
					delayed[i.In]++
				}
			}
			if len(delayed) != len(top.Nodes) {
				t.Errorf("network %s: packets are delayed in %v, want in each of %d nodes and nowhere else", n.Name, delayed, len(top.Nodes))
			}
			for s, times := range delayed {
				if s.Kind != network.NodeSpace || times != links {
					t.Errorf("network %s: %d devices of %s delay packets, want each of its %d links", n.Name, times, s, links)
				}
			}
		}
	}
}

// The switch aggregates where the mode needs it to, and is left alone where the mode works with any switch.
func TestSwitchAggregates(t *testing.T) {
	for mode, want := range map[string]string{
		network.ModeLACP: network.ModeLACP, network.ModeXOR: network.ModeXOR, network.ModeRoundRobin: network.ModeRoundRobin,
		network.ModeBroadcast: network.ModeActiveBackup, network.ModeActiveBackup: "", network.ModeTLB: "", network.ModeALB: "",
	} {
		n, err := network.Find(network.Catalogue(), "routed")
		if err != nil {
			t.Fatal(err)
		}
		top := topology(t, network.Layout{Rate: 1e6, Conditions: result.Conditions{LinkCount: 2, BondMode: mode, BondHash: "layer3+4"}})
		p, err := n.Plan(top)
		if err != nil {
			t.Fatal(err)
		}
		nodes, ports := 0, 0
		for _, b := range p.Bonds() {
			switch {
			case len(b.Members()) != 2:
				t.Errorf("%s: %d links, want 2", b, len(b.Members()))
			case b.In.Kind == network.NodeSpace && b.Mode == mode:
				nodes++
			case b.In == network.InSwitch() && b.Mode == want:
				ports++
			default:
				t.Errorf("%s is not wanted", b)
			}
		}
		if want == "" && ports != 0 || want != "" && ports != len(top.Nodes) || nodes != len(top.Nodes) {
			t.Errorf("mode %s: %d bonds of nodes and %d of the switch for %d nodes", mode, nodes, ports, len(top.Nodes))
		}
		shaped := 0
		for _, op := range p.Underlay {
			if s, ok := op.(network.Shape); ok && strings.Contains(s.Name, "p") {
				shaped++
			}
		}
		if shaped != 2*2*len(top.Nodes) {
			t.Errorf("mode %s: %d ends of links are limited, want both of %d", mode, shaped, 2*len(top.Nodes))
		}
	}
}

// A client has two links, and the servers have one faster link each: each node has its own rate, delay and bond, at both ends of its
// links.
func TestLinksOfSingleNodes(t *testing.T) {
	n, err := network.Find(network.Catalogue(), "routed")
	if err != nil {
		t.Fatal(err)
	}
	top, err := network.NewTopology(network.Layout{Nodes: 3, PodsPerNode: 1, Rate: 100e9, Conditions: result.Conditions{
		LinkDelay: time.Millisecond, NodeLinks: "node0:2x25Gbit/s+node2:10Gbit/s@5ms",
	}})
	if err != nil {
		t.Fatal(err)
	}
	p, err := n.Plan(top)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, op := range p.Underlay {
		switch op := op.(type) {
		case network.Bond, network.Impair, network.Shape:
			got = append(got, op.String())
		}
	}
	want := []string{
		"bond node0/eth0 02:6e:64:02:00:00 (underlay port) of eth0p0 eth0p1 mode 802.3ad hash layer2 mtu 1500",
		"bond switch/node0 02:6e:64:05:00:00 (switch port) of node0p0 node0p1 mode 802.3ad hash layer2 mtu 1500",
		"node0/eth0p0: send 1ms later", "node0/eth0p0: send at most 25000000000 bit/s", "switch/node0p0: send at most 25000000000 bit/s",
		"node0/eth0p1: send 1ms later", "node0/eth0p1: send at most 25000000000 bit/s", "switch/node0p1: send at most 25000000000 bit/s",
		"node1/eth0: send 1ms later", "node1/eth0: send at most 100000000000 bit/s", "switch/node1: send at most 100000000000 bit/s",
		"node2/eth0: send 5ms later", "node2/eth0: send at most 10000000000 bit/s", "switch/node2: send at most 10000000000 bit/s",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the links (-want +got):\n%s", diff)
	}
}

// Under live swap a pod of host networking has a port of its own, joined as its node is: a network beside it has the same links.
func TestPodsAreJoinedAsTheirNodes(t *testing.T) {
	n, err := network.Find(network.Catalogue(), "host")
	if err != nil {
		t.Fatal(err)
	}
	top, err := network.NewTopology(network.Layout{Nodes: 2, PodsPerNode: 2, PodsOutlive: true, Rate: 100e9, Conditions: result.Conditions{
		NodeLinks: "node0:2x1Gbit/s@1ms",
	}})
	if err != nil {
		t.Fatal(err)
	}
	p, err := n.Plan(top)
	if err != nil {
		t.Fatal(err)
	}
	got, addresses := map[string]bool{}, map[network.MAC]bool{}
	for _, op := range p.Underlay {
		switch op := op.(type) {
		case network.Shape:
			got[op.String()] = true
		case network.Veth:
			for _, end := range []network.End{op.A, op.B} {
				if addresses[end.MAC] {
					t.Errorf("two devices have the address of %s", end.Device)
				}
				addresses[end.MAC] = true
			}
		}
	}
	for pod, link := range map[string]string{
		"pod0/eth0p0": "1000000000", "pod0/eth0p1": "1000000000", "pod1/eth0p0": "1000000000", "pod2/eth0": "100000000000", "pod3/eth0": "100000000000",
	} {
		if want := pod + ": send at most " + link + " bit/s"; !got[want] {
			t.Errorf("no %q among %v", want, slices.Sorted(maps.Keys(got)))
		}
	}
}
