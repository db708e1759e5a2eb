package fleet_test

import (
	"testing"
	"time"

	"netdelta/insight"
	"netdelta/insight/fleet"
	"netdelta/report/reporttest"
	"netdelta/result"
)

// The deltas of a fleet are those of its run, and its rates are of one client: a burst that lacks a few clients is compared all the same,
// one that lacks many is left out.
func TestOf(t *testing.T) {
	const clients = 100
	run, trials := reporttest.Usual().Measure(t)
	run.Strategy = &result.Strategy{Name: result.StrategyFleet, Clients: clients, Servers: 1, Burst: time.Second}
	for i := range trials {
		own := &trials[i]
		b := &own.Bursts
		own.Fleet = &result.FleetBuild{Clients: clients}
		b.Rate = make([]float64, len(b.Round))
		b.Throughput, b.P99 = make([]float64, len(b.Round)), b.P90
		for k := range b.Round {
			fired := clients
			if own.Role == result.RoleCell && k == 0 {
				fired = clients - 4
			}
			if own.Cell == run.Cells[len(run.Cells)-1].ID && k == 1 {
				fired, b.Disturbed[k] = clients/2, result.ClientsMissing
			}
			own.Fleet.Fired = append(own.Fleet.Fired, fired)
			b.Rate[k] = 10 * float64(fired)
		}
	}
	summaries := insight.Summarize(result.List(trials))
	insight.NewJudge(nil).Conclude(&run, summaries)
	r, err := fleet.Of(insight.Measured{Run: run, Trials: summaries})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Networks) != len(run.Cells) || len(r.Null) == 0 {
		t.Fatalf("%d networks, %d null checks", len(r.Networks), len(r.Null))
	}
	rates := 0
	for _, d := range r.Deltas {
		if d.Metric == "rate" {
			rates++
			if d.Ratio != 1 || d.Value != 10 {
				t.Errorf("the rate of a client of %s is %v, %v times the baseline's", d.Network, d.Value, d.Ratio)
			}
		}
		if missing := fleet.Excluded(d); d.Metric == "p50" && (missing > 0) != (d.Cell == run.Cells[len(run.Cells)-1].ID) {
			t.Errorf("%d rounds of %s lack clients", missing, d.Network)
		}
	}
	if rates != 2 {
		t.Errorf("%d rates", rates)
	}
}
