package insight_test

import (
	"math"
	"testing"

	"netdelta/insight"
	"netdelta/result"
	"netdelta/stats"
)

// A run that looks after each build stops measuring a cell when it is settled, so that the cells of a family end up with
// different numbers of builds. When all are settled no verdict may wait for the family's test, which those numbers change.
func TestWhatIsSettledHasItsVerdict(t *testing.T) {
	t.Parallel()
	stopped, waited := 0, 0
	for seed := range uint64(60) {
		w := usual()
		w.builds, w.rounds, w.seed = 30, 20, seed+1
		w.networks = []string{"a", "b", "c", "d", "e", "f"}
		w.logs = map[string]float64{"a": math.Log(0.75), "b": math.Log(0.87), "c": math.Log(0.93), "d": math.Log(0.99), "e": 0, "f": math.Log(1.025)}
		w.buildSD = 0.012
		o := insight.Options{Sequential: true}
		cells, all := w.cells(), w.trials(t)
		var kept []result.Trial
		settled := map[string]bool{}
		done := func() bool {
			for _, known := range settled {
				if !known {
					return false
				}
			}
			return len(settled) > 0
		}
		for build := 0; build < w.builds && !done(); build++ {
			for _, trial := range all {
				if trial.Build == build && !settled[trial.Cell] {
					kept = append(kept, trial)
				}
			}
			before := settled
			settled = insight.Settled(cells, kept, o)
			for cell, known := range before {
				if known && !settled[cell] {
					waited++
				}
			}
		}
		if !done() {
			continue
		}
		stopped++
		deltas, _, _ := insight.Deltas(cells, kept, o)
		for _, d := range insight.Headlines(deltas, cells[0].Setting()) {
			if low, high := insight.CostRange(d); d.Verdict == string(stats.Unresolved) && (low > 0 || high < 0) && *d.PAdjusted > insight.ClaimLevel(o) {
				t.Errorf("seed %d: %s is %.3f [%.3f, %.3f] over %d builds, settled and unresolved (p %.4f)",
					seed, d.Network, d.Ratio, *d.RatioLow, *d.RatioHigh, d.Blocks, *d.PAdjusted)
			}
		}
	}
	if stopped < 10 {
		t.Errorf("only %d of 60 runs were settled within their builds: the test shows little", stopped)
	}
	t.Logf("%d runs settled; %d times a cell was measured again", stopped, waited)
}
