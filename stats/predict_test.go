package stats_test

import (
	"math/rand/v2"
	"testing"

	"netdelta/stats"
)

// The prediction interval holds the figure of one more run, and the confidence interval the truth, as often as they say; the intervals
// over the builds of a single run hold neither.
func TestPredict(t *testing.T) {
	const worlds, truth, betweenSD, withinSD = 4000, 0.12, 0.01, 0.003
	for _, runs := range []int{3, 5, 10} {
		next, mean := 0, 0
		random := rand.New(rand.NewPCG(uint64(runs), 5))
		figure := func() float64 { return truth + betweenSD*random.NormFloat64() + withinSD*random.NormFloat64() }
		for range worlds {
			var x []float64
			for range runs {
				x = append(x, figure())
			}
			p, ok := stats.Predict(x, stats.Options{})
			if !ok || p.Runs != runs {
				t.Fatalf("%+v of %d runs", p, runs)
			}
			if y := figure(); p.NextLow <= y && y <= p.NextHigh {
				next++
			}
			if p.Low <= truth && truth <= p.High {
				mean++
			}
		}
		t.Logf("%d runs: another one is inside %.1f%%, the truth %.1f%%", runs, 100*float64(next)/worlds, 100*float64(mean)/worlds)
		for _, n := range []int{next, mean} {
			if share := float64(n) / worlds; share < 0.94 || share > 0.96 {
				t.Errorf("%d runs: %.3f, want 0.95", runs, share)
			}
		}
	}
	if p, ok := stats.Predict([]float64{0.1, 0.2}, stats.Options{}); ok || p.Runs != 2 {
		t.Errorf("two runs predict %+v", p)
	}
}
