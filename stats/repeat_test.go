package stats_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"netdelta/stats"
)

// world makes runs of one delta, of builds with a round each: runs, builds and truth scatter as they are told to.
type world struct {
	truth, runs, builds float64
	random              *rand.Rand
}

func (w world) run(builds int, o stats.Options) stats.Estimate {
	center := w.truth + w.runs*w.random.NormFloat64()
	list := make([]stats.Build, builds)
	for i := range list {
		list[i] = stats.Build{Deltas: []float64{center + w.builds*w.random.NormFloat64()}}
	}
	return stats.Compare(list, o)
}

// The interval for repeating a run holds the mean of a dozen others as often as it says, whatever the runs and the builds scatter by; the run's
// own interval does not.
func TestForAnotherRunHoldsOtherRuns(t *testing.T) {
	const worlds = 3000
	for _, c := range []struct{ runs, builds float64 }{{0.01, 0.003}, {0.003, 0.01}, {0.01, 0.01}} {
		for _, freedom := range []float64{5, 11, 40} {
			w := world{0.12, c.runs, c.builds, rand.New(rand.NewPCG(1, uint64(freedom)))}
			own, repeated := 0, 0
			for range worlds {
				e := w.run(8, stats.Options{})
				// What is known of the spread has an error of its own.
				spread := stats.Spread{Deviation: c.runs * math.Sqrt(chiSquared(w.random, freedom)/freedom), Freedom: freedom}
				r := e.ForAnotherRun(spread, stats.Options{})
				others := w.truth + math.Sqrt(c.runs*c.runs/12+c.builds*c.builds/96)*w.random.NormFloat64()
				if e.Low <= others && others <= e.High {
					own++
				}
				if r.Low <= others && others <= r.High {
					repeated++
				}
				if !(r.HalfWidth() > e.HalfWidth()*0.8) {
					t.Fatalf("an interval of %g became one of %g", e.HalfWidth(), r.HalfWidth())
				}
			}
			held := float64(repeated) / worlds
			t.Logf("runs %g, builds %g, %g degrees: %.1f%% hold it, of the run's own %.1f%%", c.runs, c.builds, freedom, 100*held, 100*float64(own)/worlds)
			if held < 0.93 || held > 0.975 {
				t.Errorf("runs %g, builds %g, %g degrees: %.1f%% hold the mean of others", c.runs, c.builds, freedom, 100*held)
			}
			if c.runs > c.builds && float64(own)/worlds > 0.8 {
				t.Errorf("the intervals of single runs hold it too: the test tells nothing")
			}
		}
	}
}

func chiSquared(random *rand.Rand, freedom float64) float64 {
	sum := 0.0
	for range int(freedom) {
		x := random.NormFloat64()
		sum += x * x
	}
	return sum
}

// Two runs of one thing are called a change no more often than is allowed, and a change beyond the margin is found.
func TestForOtherRunsFindsWhatChanged(t *testing.T) {
	const worlds = 2000
	o := stats.Options{Margin: 0.02}
	spread := stats.Spread{Deviation: 0.01, Freedom: 20}
	random := rand.New(rand.NewPCG(4, 4))
	called := func(change float64, before, after stats.Spread) int {
		n := 0
		for range worlds {
			old, now := world{0.1, spread.Deviation, 0.003, random}, world{0.1 + change, spread.Deviation, 0.003, random}
			c := stats.Between(old.run(8, o), now.run(8, o), o).ForOtherRuns(before, after, o)
			if v := stats.JudgeChange(c, c.P, 0, stats.LowerBetter, o); v == stats.Regressed || v == stats.Improved {
				n++
			}
		}
		return n
	}
	if n := called(0, spread, spread); n > worlds/200 {
		t.Errorf("%d of %d runs of the same are called changed", n, worlds)
	}
	if n := called(0, stats.Spread{}, stats.Spread{}); n < worlds/50 {
		t.Errorf("%d of %d are called changed without a spread: the test tells nothing", n, worlds)
	}
	if n := called(0.08, spread, spread); n < worlds*9/10 {
		t.Errorf("a change of 8%% is found in %d of %d", n, worlds)
	}
}

// Excess finds how far runs scatter in units of what was expected, and nothing where builds explain all.
func TestExcess(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	for _, truth := range []float64{0, 1, 4} {
		var all []stats.Repeats
		for range 300 {
			expected := 0.002 + 0.02*random.Float64()
			r := stats.Repeats{Expected: expected}
			for range 4 {
				err := 0.001 + 0.004*random.Float64()
				r.Errors = append(r.Errors, err)
				r.Centers = append(r.Centers, 0.3+expected*math.Sqrt(truth)*random.NormFloat64()+err*random.NormFloat64())
			}
			all = append(all, r)
		}
		found, runs := stats.Excess(all)
		if math.Abs(found-truth) > 0.2+0.15*truth || runs != 4 {
			t.Errorf("runs that scatter %g times as far are found to do it %g times, by %d runs", truth, found, runs)
		}
	}
	if found, runs := stats.Excess([]stats.Repeats{{Centers: []float64{1}, Errors: []float64{1}, Expected: 1}}); found != 1 || runs != 1 {
		t.Errorf("one run says %g of %d", found, runs)
	}
}

// What has no interval, and what does not vary, stays as it is; the degrees of freedom lie between those of the two parts and their sum.
func TestForAnotherRunLeavesAlone(t *testing.T) {
	few := stats.Compare([]stats.Build{{Deltas: []float64{0.1}}, {Deltas: []float64{0.2}}}, stats.Options{})
	if r := few.ForAnotherRun(stats.Spread{Deviation: 0.1, Freedom: 9}, stats.Options{}); r.HasInterval {
		t.Errorf("two builds have the interval %g to %g", r.Low, r.High)
	}
	alike := stats.Compare([]stats.Build{{Deltas: []float64{0.1}}, {Deltas: []float64{0.1}}, {Deltas: []float64{0.1}}}, stats.Options{})
	if r := alike.ForAnotherRun(stats.Spread{Deviation: 0.1, Freedom: 9}, stats.Options{}); r.Low != r.High {
		t.Errorf("builds that agree have the interval %g to %g", r.Low, r.High)
	}
	vary := stats.Compare([]stats.Build{{Deltas: []float64{0.1}}, {Deltas: []float64{0.11}}, {Deltas: []float64{0.12}}}, stats.Options{})
	if r := vary.ForAnotherRun(stats.Spread{}, stats.Options{}); r.Low != vary.Low || r.High != vary.High {
		t.Errorf("without a spread %g to %g becomes %g to %g", vary.Low, vary.High, r.Low, r.High)
	}
}
