package path_test

import (
	"strings"
	"testing"

	"netdelta/network"
	"netdelta/probe/path"
	"netdelta/result"
	"netdelta/testbed"
)

// What a bond carried is on its links: traffic there is no stray, and a bond whose links carried nothing carried nothing, for
// all that it says itself.
func TestBond(t *testing.T) {
	n, err := network.Find(network.Catalogue(), "routed")
	if err != nil {
		t.Fatal(err)
	}
	top, err := network.NewTopology(network.Layout{Nodes: 3, PodsPerNode: 1, Conditions: result.Conditions{LinkCount: 2}})
	if err != nil {
		t.Fatal(err)
	}
	plan, err := n.Plan(top)
	if err != nil {
		t.Fatal(err)
	}
	const packets, size = 1000, 1000
	way, back := plan.Path(0, 1, network.UDP), plan.Path(1, 0, network.UDP)
	crossed := map[network.Device]bool{}
	for _, h := range append(way, back...) {
		crossed[h.Device] = true
	}
	moved := testbed.Counters{
		Index: 1, SentPackets: packets, SentBytes: packets * (size + 42), ReceivedPackets: packets, ReceivedBytes: packets * (size + 42),
	}
	half := testbed.Counters{
		Index: 1, SentPackets: packets / 2, SentBytes: packets * (size + 42) / 2, ReceivedPackets: packets / 2, ReceivedBytes: packets * (size + 42) / 2,
	}
	link := func(node int, name string) network.Device {
		return network.Device{In: network.InNode(node), Name: name}
	}
	for _, c := range []struct {
		name  string
		links map[network.Device]testbed.Counters
		says  string // "" where all is right
	}{
		{"both links", map[network.Device]testbed.Counters{
			link(0, "eth0p0"): half, link(0, "eth0p1"): half, link(1, "eth0p0"): half, link(1, "eth0p1"): half,
		}, ""},
		{"one link", map[network.Device]testbed.Counters{
			link(0, "eth0p0"): moved, link(0, "eth0p1"): {Index: 1}, link(1, "eth0p0"): {Index: 1}, link(1, "eth0p1"): moved,
		}, ""},
		{"half is missing", map[network.Device]testbed.Counters{
			link(0, "eth0p0"): half, link(0, "eth0p1"): {Index: 1}, link(1, "eth0p0"): moved, link(1, "eth0p1"): {Index: 1},
		}, "node0/eth0 sent"},
		{"a link is gone", map[network.Device]testbed.Counters{
			link(0, "eth0p0"): moved, link(1, "eth0p0"): moved, link(1, "eth0p1"): {Index: 1},
		}, "its link eth0p1"},
		{"another node's", map[network.Device]testbed.Counters{
			link(0, "eth0p0"): half, link(0, "eth0p1"): half, link(1, "eth0p0"): half, link(1, "eth0p1"): half,
			link(2, "eth0"): moved, link(2, "eth0p0"): half, link(2, "eth0p1"): half,
		}, "node2/eth0 carried"},
	} {
		o := path.Observation{
			Request: way, Response: back, PathMTU: plan.PathMTU(0, 1), Encapsulation: "none", Bonds: plan.Bonds(),
			Load:   path.Load{Protocol: network.UDP, Server: plan.Endpoint(0, 1, 20000), Message: size, Requests: packets * size, Responses: packets * size},
			Before: reading(), After: reading(), Fit: path.Fit{Largest: plan.PathMTU(0, 1)}, Sample: path.Sample{Lacks: "a tap"},
		}
		for d := range crossed {
			o.Before.Counters[d], o.After.Counters[d] = testbed.Counters{Index: 1}, moved
		}
		for d, count := range c.links {
			o.Before.Counters[d], o.After.Counters[d] = testbed.Counters{Index: 1}, count
		}
		got := path.Judge(o)
		if found := strings.Join(got.Findings, "; "); (c.says == "") != got.OK || !strings.Contains(found, c.says) {
			t.Errorf("%s: found %q, want %q", c.name, found, c.says)
		}
		audit := path.Balance(o.Before.Counters, o.After.Counters, plan.Bonds(), []path.Flow{{Request: way, Response: back, Requests: packets * size, Responses: packets * size}}, nil)
		if (c.says == "") != (len(audit.Findings) == 0) {
			t.Errorf("%s: the audit found %q", c.name, audit.Findings)
		}
	}
}
