package path_test

import (
	"testing"

	"netdelta/network"
	"netdelta/probe/path"
	"netdelta/testbed"
)

// A veth that polls counts packets without their Ethernet header. That is no encapsulation, and hides none.
func TestPolledDevices(t *testing.T) {
	n, err := network.Find(network.Catalogue(), "routed")
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
	const packets, frame = 1000, 1042
	way, back := plan.Path(0, 1, network.UDP), plan.Path(1, 0, network.UDP)
	for _, c := range []struct {
		more   int64 // bytes of each packet on the underlay
		polled bool
		ok     bool
	}{{0, false, true}, {14, false, false}, {14, true, true}, {-14, true, true}, {0, true, true}, {50, true, false}, {64, true, false}, {20, true, false}} {
		o := path.Observation{
			Request: way, Response: back, PathMTU: plan.PathMTU(0, 1), Encapsulation: "none", Polled: c.polled,
			Load:   path.Load{Protocol: network.UDP, Server: plan.Endpoint(0, 1, 20000), Message: 1000, Requests: packets * 1000, Responses: packets * 1000},
			Before: reading(), After: reading(), Fit: path.Fit{Largest: plan.PathMTU(0, 1)}, Sample: path.Sample{Lacks: "a tap"},
		}
		for _, h := range append(way, back...) {
			size := int64(frame)
			if h.Role == network.RolePort {
				size += c.more
			}
			bytes := uint64(packets * size)
			o.Before.Counters[h.Device] = testbed.Counters{Index: 1}
			o.After.Counters[h.Device] = testbed.Counters{
				Index: 1, SentPackets: packets, SentBytes: bytes, ReceivedPackets: packets, ReceivedBytes: bytes,
			}
		}
		if got := path.Judge(o); got.OK != c.ok {
			t.Errorf("%d bytes more on the underlay, polled %v: %v, found %q", c.more, c.polled, got.OK, got.Findings)
		}
	}
}
