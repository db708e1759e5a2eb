package stats_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"netdelta/stats"
)

func TestBuildsThatAgreeExactly(t *testing.T) {
	for delta, want := range map[float64]stats.Verdict{0: stats.Same, 0.01: stats.Same, 0.1: stats.Slower, -0.1: stats.Faster} {
		builds := slices.Repeat([]stats.Build{{Deltas: []float64{delta, delta}, HalfGaps: []float64{0, 0}}}, 8)
		e := stats.Compare(builds, stats.Options{})
		if !errors.Is(errors.Join(e.Warnings...), stats.ErrNoVariation) || !stats.Resolved(e, 100, 0, stats.Options{}) {
			t.Errorf("builds that all say %v: %v", delta, e.Warnings)
		}
		if got := stats.Judge(e, stats.Holm([]float64{e.P})[0], 0, stats.LowerBetter, stats.Options{}); got != want {
			t.Errorf("builds that all say %v are judged %s, want %s", delta, got, want)
		}
	}
}

func TestVerdicts(t *testing.T) {
	of := func(low, high float64) stats.Estimate {
		return stats.Estimate{Center: (low + high) / 2, Low: low, High: high, HasInterval: true, Builds: 8, P: 0.01}
	}
	broken := of(0.1, 0.2)
	broken.Center = math.NaN()
	for _, c := range []struct {
		name     string
		e        stats.Estimate
		p, floor float64
		better   stats.Better
		want     stats.Verdict
	}{
		{"slower", of(0.03, 0.05), 0.01, 0.01, stats.LowerBetter, stats.Slower},
		{"more throughput", of(0.03, 0.05), 0.01, 0.01, stats.HigherBetter, stats.Faster},
		{"less latency", of(-0.05, -0.03), 0.01, 0.01, stats.LowerBetter, stats.Faster},
		{"less throughput", of(-0.05, -0.03), 0.01, 0.01, stats.HigherBetter, stats.Slower},
		{"inside the margin", of(-0.01, 0.015), 1, 1, stats.LowerBetter, stats.Same},
		{"real but inside the margin", of(0.005, 0.015), 0.001, 0, stats.LowerBetter, stats.Same},
		{"at the margin", of(0, math.Log1p(0.02)), 1, 0, stats.LowerBetter, stats.Same},
		{"too wide", of(-0.01, 0.05), 0.01, 0, stats.LowerBetter, stats.Unresolved},
		{"p too large", of(0.01, 0.05), 0.06, 0, stats.LowerBetter, stats.Unresolved},
		{"p not a number", of(0.01, 0.05), math.NaN(), 0, stats.LowerBetter, stats.Unresolved},
		{"below the floor", of(0.01, 0.05), 0.01, 0.04, stats.LowerBetter, stats.Unresolved},
		{"floor not a number", of(0.01, 0.05), 0.01, math.NaN(), stats.LowerBetter, stats.Unresolved},
		{"floor infinite", of(0.01, 0.05), 0.01, math.Inf(1), stats.LowerBetter, stats.Unresolved},
		{"no direction", of(0.03, 0.05), 0.01, 0, "", stats.Unresolved},
		{"no interval", stats.Estimate{Center: 0.1}, 0, 0, stats.LowerBetter, stats.Unresolved},
		{"center not a number", broken, 0, 0, stats.LowerBetter, stats.Unresolved},
		{"endless", of(math.Inf(-1), math.Inf(1)), 0, 0, stats.LowerBetter, stats.Unresolved},
	} {
		if got := stats.Judge(c.e, c.p, c.floor, c.better, stats.Options{}); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	if got := stats.Judge(of(0.03, 0.05), 0.03, 0, stats.LowerBetter, stats.Options{Sequential: true}); got != stats.Unresolved {
		t.Errorf("after looks a p of 0.03 is judged %s", got)
	}
}

// TestNoiseFloorIsPooled holds that one control of few builds neither silences its setting nor is silenced where it found an error.
func TestNoiseFloorIsPooled(t *testing.T) {
	null := func(locations ...float64) stats.Estimate {
		builds := make([]stats.Build, len(locations))
		for b, x := range locations {
			builds[b].Deltas = []float64{x}
		}
		return stats.Compare(builds, stats.Options{})
	}
	within := func(what string, got, low, high float64) {
		if !(got >= low && got <= high) {
			t.Errorf("%s: the floor is %v, want %v to %v", what, got, low, high)
		}
	}
	few, steady := null(-0.2, 0.05, 0.3), null(0.002, -0.004, 0.003, 0.001, -0.002, 0.001)
	within("a control of three builds", stats.NoiseFloor(few), 0.3, math.Log(1.65))
	within("among steady ones", stats.NoiseFloor(few, few, steady, steady), 0.001, 0.01)
	within("of a setting whose control failed", stats.NoiseFloor(stats.Estimate{}, steady, steady, few), 0.001, 0.01)
	wrong := null(0.1, 0.101, 0.099, 0.1, 0.102)
	within("a control that differs", stats.NoiseFloor(wrong, wrong, steady, steady), 0.1, 0.11)
	within("none usable", stats.NoiseFloor(null(0.1), null(0.1), null()), math.Inf(1), math.Inf(1))
}

// TestVarianceIsSplit draws from known components and asks for them back.
func TestVarianceIsSplit(t *testing.T) {
	want := stats.Variance{Builds: 9e-6, Rounds: 1e-4, Bursts: 5e-5}
	const experiments, count, rounds = 200, 12, 30
	var sum stats.Variance
	for i := range experiments {
		random, builds := rand.New(rand.NewPCG(uint64(i), 9)), make([]stats.Build, count)
		for b := range builds {
			level := math.Sqrt(want.Builds) * random.NormFloat64()
			for range rounds {
				// Two halves of a burst each vary twice as much as the burst, and the burst is their mean.
				common := level + math.Sqrt(want.Rounds)*random.NormFloat64()
				odd, even := math.Sqrt(2*want.Bursts)*random.NormFloat64(), math.Sqrt(2*want.Bursts)*random.NormFloat64()
				builds[b].Deltas = append(builds[b].Deltas, common+(odd+even)/2)
				builds[b].Within = append(builds[b].Within, odd-even)
			}
		}
		v := stats.Compare(builds, stats.Options{}).Variance
		sum = stats.Variance{Builds: sum.Builds + v.Builds, Rounds: sum.Rounds + v.Rounds, Bursts: sum.Bursts + v.Bursts}
	}
	got := []float64{sum.Builds / experiments, sum.Rounds / experiments, sum.Bursts / experiments}
	if diff := cmp.Diff([]float64{want.Builds, want.Rounds, want.Bursts}, got, cmpopts.EquateApprox(0.08, 0)); diff != "" {
		t.Error(diff)
	}
}

func TestPairIgnoresRoundsThatLackAPartner(t *testing.T) {
	b := stats.Pair([]float64{1, 2, 3}, []float64{0, 1}, []float64{1, 1, 1})
	if diff := cmp.Diff(stats.Build{Deltas: []float64{0.5, 1}, HalfGaps: []float64{-0.5, 0}}, b); diff != "" {
		t.Error(diff)
	}
}

// TestNeededKnowsTheFamilyAndTheFloor asks for the builds that settle a delta, and finds that they do.
func TestNeededKnowsTheFamilyAndTheFloor(t *testing.T) {
	of := func(center, sd float64, builds int) stats.Estimate {
		all := make([]stats.Build, builds)
		for b := range all {
			all[b].Deltas = []float64{center + sd*[]float64{-1, 1}[b%2]}
		}
		return stats.Compare(all, stats.Options{})
	}
	const sd = 0.03
	alone, many := stats.Needed(of(0.05, sd, 4), 1, 0, stats.Options{}), stats.Needed(of(0.05, sd, 4), 40, 0, stats.Options{})
	if !(alone > 4 && many > alone) {
		t.Errorf("a delta alone needs %d builds, in a family of 40 %d", alone, many)
	}
	for family, need := range map[int]int{1: alone, 40: many} {
		for _, c := range []struct {
			builds int
			want   stats.Verdict
		}{{need + need%2, stats.Slower}, {need - 2 - need%2, stats.Unresolved}} {
			e := of(0.05, sd, c.builds)
			p := min(1, float64(family)*e.P)
			if got := stats.Judge(e, p, 0, stats.LowerBetter, stats.Options{}); got != c.want {
				t.Errorf("a family of %d: after %d of %d builds the verdict is %s, want %s", family, c.builds, need, got, c.want)
			}
		}
	}
	if got := stats.Needed(of(0.05, sd, 6), 1, 0.06, stats.Options{}); got != 0 {
		t.Errorf("below the floor %d builds are said to settle it", got)
	}
	if got := stats.Needed(of(0.001, sd, 6), 1, 0.06, stats.Options{}); !(got > 6) {
		t.Errorf("inside the margin %d builds are said to settle it", got)
	}
	if e := of(0.05, 0.002, 8); stats.Resolved(e, 5, 0.06, stats.Options{Sequential: true}) == stats.Resolved(e, 5, 0, stats.Options{Sequential: true}) && e.HalfWidth() > math.Log1p(0.02)/4 {
		t.Error("a delta below the floor counts as resolved")
	}
}
