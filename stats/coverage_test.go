package stats_test

import (
	"math"
	"testing"

	"netdelta/internal/gather"
	"netdelta/stats"
	"netdelta/stats/simulate"
)

// TestIntervalsHoldTheTruth is the promise of the 95% interval, held against experiments whose truth is known: it
// must be kept in 93% to 97% of them under every noise. The half widths must also stay useful: an interval may not
// buy its coverage by being wide.
func TestIntervalsHoldTheTruth(t *testing.T) {
	const trials, truth = 3000, 0.01
	options := stats.Options{Quantile: gather.Remembered(stats.StudentQuantile)}
	for n, noise := range simulate.Noises() {
		for _, builds := range []int{6, 16} {
			world := simulate.World{Noise: noise, Shifts: []float64{truth}, RoundSD: 0.0163, BuildSD: 0.005, MinRounds: 10, MaxRounds: 40}
			estimates := simulate.Parallel(trials, func(i int) stats.Estimate {
				e, cell := world.Start(uint64(i)<<8|uint64(n)), make([]stats.Build, builds)
				for b := range cell {
					cell[b] = e.Build().Cell(0)
				}
				return stats.Compare(cell, options)
			})
			held, ideal := 0, 2.8*0.0075/math.Sqrt(float64(builds))
			widths := make([]float64, trials)
			for i, e := range estimates {
				if e.Low <= truth && truth <= e.High {
					held++
				}
				widths[i] = e.HalfWidth()
			}
			share := float64(held) / trials
			t.Logf("%s, %d builds: %.1f%% hold the truth, half width %.2f%%", noise, builds, 100*share, 100*stats.Median(widths))
			if share < 0.93 || share > 0.97 {
				t.Errorf("%s, %d builds: %.1f%% of the 95%% intervals hold the truth", noise, builds, 100*share)
			}
			if limit := ideal; noise != simulate.Autocorrelated && stats.Median(widths) > limit {
				t.Errorf("%s, %d builds: half width %.2f%%, more than %.2f%%", noise, builds, 100*stats.Median(widths), 100*limit)
			}
		}
	}
}

// family is the size of the families that the tests of false claims try.
const family = 14

// claims counts the verdicts of one kind or the other in a run, as a runner gives them.
func claims(r simulate.Run, adjusted []float64, o stats.Options) (claimed, same int) {
	for c, e := range r.Cells {
		switch stats.Judge(e, adjusted[c], stats.NoiseFloor(r.Null), stats.LowerBetter, o) {
		case stats.Slower, stats.Faster:
			claimed++
		case stats.Same:
			same++
		}
	}
	return claimed, same
}

// TestFalseClaimsAreRare has fourteen deltas that are all null, under every noise, with a margin so small that Same
// cannot hide anything. At most one run in twenty may claim anything.
func TestFalseClaimsAreRare(t *testing.T) {
	const trials = 300
	options := stats.Options{Margin: 1e-6, Quantile: gather.Remembered(stats.StudentQuantile)}
	var all []bool
	for n, noise := range simulate.Noises() {
		world := simulate.World{Noise: noise, Shifts: make([]float64, family), RoundSD: 0.0163, BuildSD: 0.005, MinRounds: 8, MaxRounds: 16}
		all = append(all, simulate.Parallel(trials, func(i int) bool {
			r := world.Run(uint64(i)<<8|uint64(n), 11, options, func(stats.Estimate) bool { return false })
			claimed, _ := claims(r, stats.Holm(r.P()), options)
			return claimed > 0
		})...)
	}
	wrong := 0
	for _, claimed := range all {
		if claimed {
			wrong++
		}
	}
	t.Logf("of %d runs without a true delta, %d claimed one", len(all), wrong)
	if limit := len(all) / 20; wrong > limit {
		t.Errorf("of %d runs without a true delta, %d claimed one: more than %d", len(all), wrong, limit)
	}
}

// TestFewBuildsAreHonestAndHeard tries families of fourteen on 2 to 10 builds, whatever way builds scatter: without a true delta
// at most one run in twenty may find one, with no help from margin or noise floor; and large deltas must be found.
func TestFewBuildsAreHonestAndHeard(t *testing.T) {
	const trials = 1500
	options := stats.Options{MinBuilds: 2, Quantile: gather.Remembered(stats.StudentQuantile)}
	for n, between := range simulate.Betweens() {
		for _, builds := range []int{2, 3, 4, 6, 10} {
			shifts := make([]float64, family)
			shifts[0] = math.Log(1.34)
			world := simulate.World{Noise: simulate.Normal, Between: between, Shifts: shifts, BuildSD: 0.02, MinRounds: 1, MaxRounds: 1}
			type outcome struct{ wrong, held, found int }
			var sum outcome
			for _, o := range simulate.Parallel(trials, func(i int) (o outcome) {
				e, cells := world.Start(uint64(i)<<8|uint64(n*16+builds)), make([][]stats.Build, family)
				for range builds {
					sample := e.Build()
					for c := range cells {
						cells[c] = append(cells[c], sample.Cell(c))
					}
				}
				p := make([]float64, family)
				for c := range cells {
					estimate := stats.Compare(cells[c], options)
					p[c] = estimate.P
					if estimate.Low <= shifts[c] && shifts[c] <= estimate.High {
						o.held++
					}
				}
				for c, adjusted := range stats.Holm(p) {
					switch {
					case adjusted < 0.05 && c == 0:
						o.found = 1
					case adjusted < 0.05:
						o.wrong = 1
					}
				}
				return o
			}) {
				sum = outcome{sum.wrong + o.wrong, sum.held + o.held, sum.found + o.found}
			}
			wrong, held, found := 100*float64(sum.wrong)/trials, 100*float64(sum.held)/trials/family, 100*float64(sum.found)/trials
			t.Logf("builds %q, %d: %.1f%% of runs claim falsely, %.1f%% of intervals hold the truth, +34%% found in %.0f%%", between, builds, wrong, held, found)
			// Three standard deviations of 1500 runs are 1.7 points.
			if wrong > 6.7 {
				t.Errorf("builds %q, %d: %.1f%% of runs claim what is not there", between, builds, wrong)
			}
			if held < 93.5 {
				t.Errorf("builds %q, %d: %.1f%% of the 95%% intervals hold the truth", between, builds, held)
			}
			if between != simulate.BadBuild && builds >= 6 && found < 95 {
				t.Errorf("builds %q, %d: +34%% is found in %.0f%% of runs", between, builds, found)
			}
		}
	}
}

// TestStoppingRuleStaysHonest lets Resolved decide when to stop, where that is hardest: noise such that stopping
// takes about 16 of at most 24 builds, with deltas that are null, at the edge of the margin, and beyond it.
func TestStoppingRuleStaysHonest(t *testing.T) {
	const trials = 250
	options := stats.Options{Sequential: true, Quantile: gather.Remembered(stats.StudentQuantile)}
	for _, truth := range []float64{0, 0.0195, 0.04} {
		shifts := make([]float64, family)
		for c := range shifts {
			shifts[c] = truth
		}
		world := simulate.World{Noise: simulate.Normal, Shifts: shifts, BuildSD: 0.015, MinRounds: 1, MaxRounds: 1}
		type outcome struct{ held, claimed, same, builds int }
		runs := simulate.Parallel(trials, func(i int) outcome {
			r := world.Run(uint64(i), 24, options, func(e stats.Estimate) bool { return stats.Resolved(e, family, 0, options) })
			o := outcome{builds: r.Builds}
			for _, e := range r.Cells {
				if e.Low <= truth && truth <= e.High {
					o.held++
				}
			}
			o.claimed, o.same = claims(r, stats.Holm(r.P()), options)
			return o
		})
		var sum outcome
		wrong := 0
		for _, o := range runs {
			sum = outcome{sum.held + o.held, sum.claimed + o.claimed, sum.same + o.same, sum.builds + o.builds}
			if o.claimed > 0 {
				wrong++
			}
		}
		share := func(n int) float64 { return 100 * float64(n) / (trials * family) }
		t.Logf("truth %.4f: %.1f%% of intervals hold it, %.1f%% claimed, %.1f%% same, %.1f builds", truth, share(sum.held), share(sum.claimed), share(sum.same), share(sum.builds)/100)
		// The cells of a run share their baseline, so these shares are known to about 1%, not 0.4%.
		if held := share(sum.held); held < 92 || held > 98 {
			t.Errorf("truth %.4f: %.1f%% of the 95%% intervals hold it", truth, held)
		}
		switch {
		case truth == 0 && wrong > trials/20:
			t.Errorf("%d of %d runs without a true delta claimed one", wrong, trials)
		case truth > math.Log1p(stats.DefaultMargin) && share(sum.same) > 2.5:
			t.Errorf("%.1f%% of deltas of %.0f%% were called same", share(sum.same), 100*truth)
		case truth > math.Log1p(stats.DefaultMargin) && share(sum.claimed) < 80:
			t.Errorf("only %.1f%% of deltas of %.0f%% were found", share(sum.claimed), 100*truth)
		}
	}
}
