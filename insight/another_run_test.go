package insight_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"netdelta/insight"
	"netdelta/report/words"
	"netdelta/result"
)

// A run that knows what runs differ by prints the interval for repeating it, keeps its own, and leaves networks' comparisons with each other as
// they are.
func TestIntervalsAreForRepeatingTheRun(t *testing.T) {
	w := usual()
	conclude := func(r *result.Repeating) result.Run {
		run := result.Run{Cells: w.cells(), Confidence: 0.95, Margin: 0.02, Repeating: r}
		words.NewJudge(nil).Conclude(&run, w.trials(t))
		return run
	}
	alone := conclude(nil)
	repeated := conclude(&result.Repeating{Spreads: []result.RunSpread{{Workload: "tcp-rr", Level: 0.004, Share: 0.05, TimeLevel: 0.004, TimeShare: 0.02, Freedom: 11}}})
	for i, d := range repeated.Deltas {
		own := alone.Deltas[i]
		if !d.Headline {
			continue
		}
		if d.Within == nil || *d.Within.RatioLow != *own.RatioLow || *d.Within.DifferenceHigh != *own.DifferenceHigh {
			t.Errorf("%s has lost the interval of the run alone: %+v", d.Network, d.Within)
		}
		if d.Ratio != own.Ratio || *d.RatioHigh-*d.RatioLow < 0.015 || *d.RatioHigh-*d.RatioLow < *own.RatioHigh-*own.RatioLow {
			t.Errorf("%s is %g [%g, %g]", d.Network, d.Ratio, *d.RatioLow, *d.RatioHigh)
		}
	}
	bridge := find(t, repeated.Deltas, "bridge", "p50")
	// 2.262, Student's for 9 degrees of freedom, is the least that it could be with 0.4% and 5% of the 12/112 that are added.
	if half, least := math.Log(*bridge.RatioHigh / *bridge.RatioLow)/2, 2.2*math.Hypot(0.004, 0.05*0.12/1.12); half < least || half > 1.3*least {
		t.Errorf("bridge: half the interval is %g, want about %g", half, least)
	}
	if time := (*bridge.DifferenceHigh - *bridge.DifferenceLow) / 2; time < 2.2*math.Hypot(0.004*baseNS, 0.02*0.12*baseNS) {
		t.Errorf("bridge: half the interval of the added time is %g ns", time)
	}
	if v := find(t, repeated.Deltas, "macvlan", "p50").Verdict; v != "same" {
		t.Errorf("macvlan, which costs nothing, is %s", v)
	}
	for i, c := range repeated.Contrasts {
		if *c.RatioLow != *alone.Contrasts[i].RatioLow {
			t.Errorf("the contrast of %s and %s has changed", c.Cell, c.Other)
		}
	}
	if now := insight.Past(repeated)[0]; math.Abs(now.Error-insight.Past(alone)[0].Error) > 1e-9 {
		t.Error("what a run leaves to later ones depends on what it knew of earlier ones")
	}
}

// runsOf makes runs whose machine differs from run to run: by level for all deltas, and by a share of what networks add.
func runsOf(random *rand.Rand, n int, level, share float64) [][]insight.PastDelta {
	var runs [][]insight.PastDelta
	for range n {
		machine := random.NormFloat64()
		var deltas []insight.PastDelta
		for _, added := range []float64{0.05, 0.2, 0.4, 0.8} {
			own := math.Hypot(level, share*-math.Expm1(-added))
			center := added + own*(machine+random.NormFloat64())/math.Sqrt2 + 0.001*random.NormFloat64()
			deltas = append(deltas, insight.PastDelta{
				Name: string(rune('a' + int(10*added))), Workload: "tcp-rr", Regime: "waking", Center: center, Error: 0.001,
				Added: 20e-6 * center, AddedError: 20e-9, Baseline: 20e-6,
			})
		}
		runs = append(runs, deltas)
	}
	return runs
}

// Earlier runs of a machine take the place of what was measured elsewhere, the more the more there are; of what was not measured they have to be
// three.
func TestEarlierRunsSayWhatRunsDifferBy(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 3))
	measured := []result.RunSpread{{Workload: "tcp-rr", Regime: "waking", Level: 0.004, Share: 0.04, TimeLevel: 0.004, TimeShare: 0.04, Freedom: 11}}
	if r := insight.Repeating(measured, nil); r.Runs != 0 || r.Spreads[0] != measured[0] {
		t.Errorf("without earlier runs %+v", r)
	}
	mean := func(runs int, level, share float64) (sum float64) {
		const worlds = 200
		for range worlds {
			r := insight.Repeating(measured, runsOf(random, runs, level, share))
			if r.Runs != runs || r.Spreads[0].Freedom != 11+float64(runs-1) {
				t.Fatalf("of %d runs %+v", runs, r)
			}
			sum += r.Spreads[0].Share * r.Spreads[0].Share / worlds
		}
		return math.Sqrt(sum)
	}
	if wilder := mean(60, 0.012, 0.12); wilder < 0.1 || wilder > 0.13 {
		t.Errorf("60 runs that differ three times as much say %g, want about 0.11", wilder)
	}
	if few, many := mean(3, 0.001, 0.01), mean(60, 0.001, 0.01); few < 0.03 || many > 0.025 {
		t.Errorf("runs that differ by a quarter say %g when there are 3, and %g when there are 60", few, many)
	}
	if r := insight.Repeating(nil, runsOf(random, 2, 0.01, 0.1)); r != nil {
		t.Errorf("two runs of what was never measured say %+v", r)
	}
	if r := insight.Repeating(nil, runsOf(random, 12, 0.01, 0.1)); r == nil || r.Runs != 12 || r.Spreads[0].Freedom != 11 {
		t.Errorf("twelve runs of what was never measured say %+v", r)
	}
}

// Where the baseline has moved, what is added is held against its like: a network that adds what it added has not changed.
func TestComparedByAddedTimeWhenTheBaselineMoved(t *testing.T) {
	measure := func(slower, added float64, seed uint64) insight.Measured {
		w := usual()
		w.seed, w.networks = seed, []string{"bridge"}
		w.logs = map[string]float64{"bridge": math.Log((slower*baseNS + added) / (slower * baseNS))}
		trials := w.trials(t)
		for i := range trials {
			b := &trials[i].Bursts
			for _, column := range [][]float64{b.P50, b.P90, b.Min, b.Mean} {
				for k := range column {
					column[k] *= slower
				}
			}
		}
		m := insight.Measured{
			Run: result.Run{Cells: w.cells(), Confidence: 0.95, Margin: 0.02, Repeating: &result.Repeating{
				Spreads: []result.RunSpread{{Workload: "tcp-rr", Level: 0.001, Share: 0.01, TimeLevel: 0.001, TimeShare: 0.01, Freedom: 30}},
			}},
			Trials: insight.Summarize(result.List(trials)),
		}
		words.NewJudge(nil).ConcludeFrom(&m.Run, m.Trials)
		return m
	}
	old := measure(1, 5000, 1)
	for _, c := range []struct {
		name          string
		slower, added float64
		want          string
		byTime        bool
	}{
		{"the baseline is slower, and bridge adds the same", 1.4, 5000, "same", true},
		{"the baseline is faster, and bridge adds the same", 0.7, 5000, "same", true},
		{"the baseline is slower, and bridge adds more and a larger share", 1.4, 9000, "regressed", false},
		{"the baseline is faster, and bridge adds more", 0.7, 6500, "regressed", true},
		{"the machine is slower at everything", 1.4, 7000, "same", false},
		{"the baseline is as it was, and bridge adds more", 1, 6500, "regressed", false},
	} {
		found := words.NewJudge(nil).Compare(old, measure(c.slower, c.added, 2), insight.Comparing{})
		if len(found.Changes) != 1 || found.Changes[0].Verdict != c.want || found.Changes[0].ByTime != c.byTime {
			t.Errorf("%s: %+v", c.name, found.Changes)
		}
	}
}
