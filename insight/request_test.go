package insight_test

import (
	"math"
	"testing"

	"netdelta/insight"
	"netdelta/result"
)

// A lone request wakes both ends: the setting that does so is taken, in each placement, and calls add up.
func TestRequestShares(t *testing.T) {
	saturated, waking := measured("vxlan", "slower", 30, 31, 32), measured("vxlan", "slower", 9, 10, 11)
	saturated.Params.CPU, waking.Params.CPU = "same", "two"
	run := runOf()
	for _, d := range []result.Delta{saturated, waking} {
		run.Deltas = append(run.Deltas, d)
		run.Cells = append(run.Cells, result.Cell{ID: "vxlan" + d.Params.CPU, Network: d.Network, Placement: d.Placement, Workload: d.Workload, Params: d.Params, Path: d.Path, Role: result.RoleCell})
	}
	shares := insight.Request{Took: 2e6, Calls: 8}.Shares(run)
	if len(shares) != 1 || shares[0].Delta.Params.CPU != "two" {
		t.Fatalf("shares %+v", shares)
	}
	s := shares[0]
	if math.Abs(s.Added-24_000) > 1e-6 || math.Abs(s.Share-0.012) > 1e-9 || math.Abs(s.Low-0.0108) > 1e-9 || !s.Known {
		t.Errorf("8 calls of 3 µs in 2 ms: %+v", s)
	}
	run.Margin = 0.01
	recorded := insight.Request{Took: 2e6, Calls: 8}.Record(run).Shares[0]
	if recorded.Network != "vxlan" || recorded.Added != s.Added || recorded.Share != s.Share || *recorded.ShareLow != s.Low || *recorded.AddedHigh != s.AddedHigh || recorded.Matters != result.MattersYes {
		t.Errorf("recorded is %+v", recorded)
	}
	if yes, no := s.Matters(0.02); yes || !no {
		t.Error("1.2% matter where 2% do")
	}
	if yes, no := s.Matters(0.01); !yes || no {
		t.Error("1.2% don't matter where 1% do")
	}
	if yes, no := (insight.Request{Took: 1e6, Calls: 8}).Shares(runOf(hasty("vxlan", 30)))[0].Matters(0.02); yes || no {
		t.Error("a network without an interval matters, or not")
	}
}
