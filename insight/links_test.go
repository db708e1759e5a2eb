package insight_test

import (
	"math"
	"testing"

	"netdelta/insight"
	"netdelta/report/words"
	"netdelta/result"
	"netdelta/unit"
)

// What is said of links follows from what each build's trial counted; trials that failed or went another way are left out.
func TestLinks(t *testing.T) {
	cell := result.Cell{
		ID: "routed", Network: "routed", Workload: "tcp-stream",
		Params: result.Params{Connections: 8, Conditions: result.Conditions{LinkCount: 2, BondMode: "802.3ad", BondHash: "layer3+4", LinkRate: 10 * unit.Mbit}},
	}
	trial := func(build int, a, b int64) result.Trial {
		use := func(device string, sent int64) result.LinkUse {
			return result.LinkUse{Device: device, Bond: "node0/eth0", Sent: sent, Share: float64(sent) / float64(a+b)}
		}
		return result.Trial{
			Cell: "routed", Build: build, Bursts: result.Bursts{Span: []int64{5e8, 5e8}}, // a second in all
			Links: []result.LinkUse{use("node0/eth0p0", a), use("node0/eth0p1", b), {Device: "node1/eth0p0", Bond: "node1/eth0", Sent: a, Share: 1, Rate: 40 * unit.Mbit}},
		}
	}
	failed := trial(3, 1, 0)
	failed.Failed = "its pod was lost"
	misrouted := trial(4, 1, 0)
	misrouted.Path = &result.Path{}
	got := insight.Links([]result.Cell{cell, {ID: "other"}}, []result.Trial{
		trial(0, 500_000, 500_000), trial(1, 900_000, 100_000), trial(2, 600_000, 400_000), failed, misrouted,
	})
	if len(got) != 3 {
		t.Fatalf("%d links, want 3", len(got))
	}
	first := got[0]
	near := func(a, b float64) bool { return math.Abs(a-b) < 1e-9 }
	if first.Device != "node0/eth0p0" || first.Builds != 3 || !near(first.Share, 0.6) || !near(first.ShareLow, 0.5) || !near(first.ShareHigh, 0.9) {
		t.Errorf("the first link: %+v", first)
	}
	// 600 kB in a second are 4.8 of 10 Mbit/s.
	if !near(first.Used, 0.48) {
		t.Errorf("the first link used %g of its rate, want 0.48", first.Used)
	}
	// The same of the 40 Mbit/s of a link with a rate of its own.
	if !near(got[2].Used, 0.12) {
		t.Errorf("the link with a rate of its own used %g of it, want 0.12", got[2].Used)
	}
	spreads := words.Spreads(got)
	if len(spreads) != 2 || spreads[0].Shares != "60% 40%" || spreads[0].Used != "48% 32%" {
		t.Errorf("spreads: %+v", spreads)
	}
}
