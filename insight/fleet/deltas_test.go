package fleet_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"

	"netdelta/experiment/fleet"
	insight "netdelta/insight/fleet"
	"netdelta/result"
	"netdelta/stats"
)

// measured is a fleet's bursts: p50 takes 10 us times ratio, with noise.
func measured(name string, role result.Role, builds int, ratio float64, rng *rand.Rand) fleet.Network {
	n := fleet.Network{Network: name, Role: role, Latency: &fleet.Quantiles{P50: 10_000 * ratio}}
	for b := range builds {
		for r := range 4 {
			p50 := 10_000 * ratio * math.Exp(0.005*rng.NormFloat64())
			n.Bursts = append(n.Bursts, fleet.Burst{Build: b, Round: r, Clients: 20, Rate: 20e9 / p50, Throughput: 1e6, P50: p50, P99: 2 * p50})
		}
	}
	return n
}

func outcome(builds int) fleet.Outcome {
	rng := rand.New(rand.NewPCG(3, 0))
	return fleet.Outcome{Clients: 20, Seed: 1, Networks: []fleet.Network{
		measured("host", result.RoleBaseline, builds, 1, rng), measured("host", result.RoleControl, builds, 1, rng),
		measured("vxlan", result.RoleCell, builds, 1.3, rng), measured("pod", result.RoleCell, builds, 1, rng),
	}}
}

func TestJudge(t *testing.T) {
	r := insight.Judge(outcome(6), stats.Options{})
	if len(r.Null) != 3 || len(r.Deltas) != 6 {
		t.Fatalf("%d null checks, %d deltas", len(r.Null), len(r.Deltas))
	}
	for _, d := range append(r.Deltas, r.Null...) {
		want, ratio := stats.Same, 1.0
		if d.Network == "vxlan" {
			want, ratio = stats.Slower, 1.3
			if d.Metric == "rate" {
				ratio = 1 / 1.3
			}
		}
		if d.Verdict != want || math.Abs(d.Ratio/ratio-1) > 0.02 || d.RatioLow == nil || *d.RatioLow > ratio*1.01 || *d.RatioHigh < ratio*0.99 {
			t.Errorf("%+v, want %s by %v", d, want, ratio)
		}
	}
}

// With too few builds there is no interval, and a burst that lacks clients is left out of the deltas.
func TestJudgeLeavesOut(t *testing.T) {
	o := outcome(2)
	for i := range 4 {
		o.Networks[2].Bursts[i].Clients = 18
	}
	o.Networks[3].Bursts = nil
	r := insight.Judge(o, stats.Options{})
	for _, d := range r.Deltas {
		if d.Verdict != stats.Unresolved || d.RatioLow != nil {
			t.Errorf("%+v", d)
		}
		if d.Network == "vxlan" && (d.Excluded != 4 || d.Rounds != 4) {
			t.Errorf("%d rounds are left out of %d", d.Excluded, d.Rounds)
		}
	}
	if _, err := json.Marshal(r); err != nil {
		t.Error(err)
	}
	alone := insight.Judge(fleet.Outcome{Networks: o.Networks[:1]}, stats.Options{})
	if len(alone.Deltas)+len(alone.Null) > 0 {
		t.Errorf("one network has deltas: %+v", alone.Deltas)
	}
}
