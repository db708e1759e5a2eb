package measure

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/unit"
)

// bondedBed is a testbed over bonds whose counters come from a list.
type bondedBed struct {
	testbed.Observer
	plan     network.Plan
	counters []map[network.Device]testbed.Counters
}

func (b *bondedBed) Plan() network.Plan { return b.plan }

func (b *bondedBed) Instruments() testbed.Instruments { return testbed.Instruments{Observer: b} }

func (b *bondedBed) Path(_, _ testbed.Pod, protocol network.Protocol) []network.Hop {
	return b.plan.Path(0, 1, protocol)
}

func (b *bondedBed) Counters(context.Context) (map[network.Device]testbed.Counters, error) {
	next := b.counters[0]
	b.counters = b.counters[1:]
	return next, nil
}

// What links sent is counted burst by burst, at the node and at the switch, for the bonds on the way alone; what they sent
// between bursts is not.
func TestLinkMeter(t *testing.T) {
	for _, mode := range []string{network.ModeLACP, network.ModeActiveBackup} { // with a bond of the switch, and without
		n, err := network.Find(network.Catalogue(), "host")
		if err != nil {
			t.Fatal(err)
		}
		top, err := network.NewTopology(network.Layout{Nodes: 3, PodsPerNode: 1, Conditions: result.Conditions{
			LinkCount: 2, BondMode: mode, NodeLinks: "node1:2x1Gbit/s",
		}})
		if err != nil {
			t.Fatal(err)
		}
		plan, err := n.Plan(top)
		if err != nil {
			t.Fatal(err)
		}
		sent := func(bytes uint64) map[network.Device]testbed.Counters {
			all := map[network.Device]testbed.Counters{}
			for _, op := range plan.Underlay {
				if v, ok := op.(network.Veth); ok {
					all[v.A.Device] = testbed.Counters{SentBytes: bytes}
					all[v.B.Device] = testbed.Counters{SentBytes: 1000}
				}
			}
			all[network.Device{In: network.InNode(0), Name: "eth0p1"}] = testbed.Counters{SentBytes: 3 * bytes}
			return all
		}
		bed := &bondedBed{plan: plan, counters: []map[network.Device]testbed.Counters{sent(0), sent(100), sent(5000), sent(5100)}}
		m := linksOf(bed, nil, nil, network.TCP)
		for range 2 {
			if err := m.begin(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := m.end(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		want := []result.LinkUse{
			{Device: "node0/eth0p0", Bond: "node0/eth0", Sent: 200, Share: 0.25},
			{Device: "node0/eth0p1", Bond: "node0/eth0", Sent: 600, Share: 0.75},
			{Device: "switch/node0p0", Bond: "switch/node0"},
			{Device: "switch/node0p1", Bond: "switch/node0"},
			{Device: "node1/eth0p0", Bond: "node1/eth0", Sent: 200, Share: 0.5, Rate: unit.Gbit},
			{Device: "node1/eth0p1", Bond: "node1/eth0", Sent: 200, Share: 0.5, Rate: unit.Gbit},
			{Device: "switch/node1p0", Bond: "switch/node1", Rate: unit.Gbit},
			{Device: "switch/node1p1", Bond: "switch/node1", Rate: unit.Gbit},
		}
		if diff := cmp.Diff(want, m.use()); diff != "" {
			t.Errorf("mode %s (-want +got):\n%s", mode, diff)
		}
	}
}

// Without bonds nothing is counted.
func TestNoLinkMeter(t *testing.T) {
	n, err := network.Find(network.Catalogue(), "host")
	if err != nil {
		t.Fatal(err)
	}
	top, err := network.NewTopology(network.Layout{Nodes: 2, PodsPerNode: 1})
	if err != nil {
		t.Fatal(err)
	}
	plan, err := n.Plan(top)
	if err != nil {
		t.Fatal(err)
	}
	m := linksOf(&bondedBed{plan: plan}, nil, nil, network.TCP)
	if m != nil || m.begin(t.Context()) != nil || m.end(t.Context()) != nil || m.use() != nil {
		t.Error("links of no bond were counted")
	}
}
