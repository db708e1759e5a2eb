package stats_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"netdelta/internal/gather"
	"netdelta/internal/property"
	"netdelta/stats"
	"netdelta/stats/simulate"
)

// of is the estimate of builds that came out as given.
func of(locations ...float64) stats.Estimate {
	builds := make([]stats.Build, len(locations))
	for i, l := range locations {
		builds[i] = stats.Build{Deltas: []float64{l}}
	}
	return stats.Compare(builds, stats.Options{})
}

// The half width is held against the tables of Student's t.
func TestBetweenIsWelch(t *testing.T) {
	before := of(0.10, 0.12, 0.11, 0.13, 0.09, 0.11) // variance 0.0002
	// Equal variances and numbers make 2*(6-1) degrees of freedom.
	c := stats.Between(before, of(0.15, 0.17, 0.16, 0.18, 0.14, 0.16), stats.Options{})
	if want := 2.228139 * math.Sqrt(2*0.0002/6); math.Abs(c.Center-0.05) > 1e-12 || math.Abs(c.HalfWidth()-want) > 1e-6*want {
		t.Errorf("center %v, half width %v, want 0.05 and %v", c.Center, c.HalfWidth(), want)
	}
	// Others make (u+v)^2 / (u^2/5 + v^2/7), here 9.2: between the quantiles of 9 and 10.
	c = stats.Between(before, of(0.20, 0.26, 0.18, 0.24, 0.22, 0.16, 0.28, 0.22), stats.Options{})
	scatter := math.Sqrt(0.0002/6 + 0.0016/8)
	if q := c.HalfWidth() / scatter; q < 2.228139 || q > 2.262157 || c.Builds != [2]int{6, 8} || math.Abs(c.Center-0.11) > 1e-12 {
		t.Errorf("center %v, half width %v scatters, of %v builds", c.Center, q, c.Builds)
	}
}

func TestBetweenTooFewBuilds(t *testing.T) {
	few, enough := of(0.1, 0.2), of(0.1, 0.2, 0.1, 0.2, 0.1, 0.2)
	for name, c := range map[string]stats.Change{
		"old": stats.Between(few, enough, stats.Options{}), "new": stats.Between(enough, few, stats.Options{}),
		"none": stats.Between(stats.Compare(nil, stats.Options{}), enough, stats.Options{}),
	} {
		if c.HasInterval || !math.IsNaN(c.Low) || c.P != 1 || c.Need != 3 || stats.NeedForChange(c, stats.Options{}) != 3 {
			t.Errorf("too few builds in %s: %+v", name, c)
		}
		if v := stats.JudgeChange(c, 0, 0, stats.LowerBetter, stats.Options{}); v != stats.Unresolved {
			t.Errorf("too few builds in %s: %s", name, v)
		}
	}
}

func TestBetweenBuildsThatAgreeExactly(t *testing.T) {
	same := of(slices.Repeat([]float64{0.3}, 8)...)
	for shift, want := range map[float64]stats.Verdict{0: stats.Same, 0.01: stats.Same, 0.05: stats.Regressed, -0.05: stats.Improved} {
		c := stats.Between(same, of(slices.Repeat([]float64{0.3 + shift}, 8)...), stats.Options{})
		if !errors.Is(errors.Join(c.Warnings...), stats.ErrNoVariation) {
			t.Errorf("a shift of %v has no warning", shift)
		}
		if got := stats.JudgeChange(c, c.P, 0, stats.LowerBetter, stats.Options{}); got != want {
			t.Errorf("a shift of %v is judged %s, want %s", shift, got, want)
		}
	}
	// One run that does not vary says nothing of the other.
	c := stats.Between(same, of(0.1, 0.5, 0.2, 0.4, 0.3, 0.35), stats.Options{})
	if !(c.HalfWidth() > 0.1) || len(c.Warnings) > 0 {
		t.Errorf("half width %v, warnings %v", c.HalfWidth(), c.Warnings)
	}
}

func TestChangeVerdicts(t *testing.T) {
	between := func(low, high float64) stats.Change {
		return stats.Change{Center: (low + high) / 2, Low: low, High: high, HasInterval: true, P: 0.01, Builds: [2]int{8, 8}}
	}
	margin := math.Log1p(0.02)
	for _, c := range []struct {
		name     string
		c        stats.Change
		p, floor float64
		better   stats.Better
		want     stats.Verdict
	}{
		{"slower", between(0.03, 0.05), 0.01, 0.01, stats.LowerBetter, stats.Regressed},
		{"faster", between(-0.05, -0.03), 0.01, 0.01, stats.LowerBetter, stats.Improved},
		{"more throughput", between(0.03, 0.05), 0.01, 0.01, stats.HigherBetter, stats.Improved},
		{"less throughput", between(-0.05, -0.03), 0.01, 0.01, stats.HigherBetter, stats.Regressed},
		{"inside", between(-margin, margin), 1, 1, stats.LowerBetter, stats.Same},
		{"real, but the margin is in the interval", between(0.015, 0.05), 0.0001, 0, stats.LowerBetter, stats.Unresolved},
		{"just at the margin", between(margin, 0.05), 0.0001, 0, stats.LowerBetter, stats.Unresolved},
		{"p too large", between(0.03, 0.05), 0.06, 0, stats.LowerBetter, stats.Unresolved},
		{"p not a number", between(0.03, 0.05), math.NaN(), 0, stats.LowerBetter, stats.Unresolved},
		{"below the floor", between(0.03, 0.05), 0.01, 0.06, stats.LowerBetter, stats.Unresolved},
		{"floor not a number", between(0.03, 0.05), 0.01, math.NaN(), stats.LowerBetter, stats.Unresolved},
		{"floor infinite", between(0.03, 0.05), 0.01, math.Inf(1), stats.LowerBetter, stats.Unresolved},
		{"no direction", between(0.03, 0.05), 0.01, 0, "", stats.Unresolved},
		{"endless", between(math.Inf(-1), math.Inf(1)), 0, 0, stats.LowerBetter, stats.Unresolved},
	} {
		if got := stats.JudgeChange(c.c, c.p, c.floor, c.better, stats.Options{}); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	if got := stats.JudgeChange(between(0.03, 0.05), 0.03, 0, stats.LowerBetter, stats.Options{Sequential: true}); got != stats.Unresolved {
		t.Errorf("after looks a p of 0.03 is judged %s", got)
	}
}

// Swapping the runs turns every sign and nothing else, and p agrees with the interval.
func TestBetweenIsSymmetric(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		run := rapid.SliceOfN(rapid.Float64Range(-0.2, 0.2), 6, 20)
		a, b := of(run.Draw(t, "old")...), of(run.Draw(t, "new")...)
		there, back := stats.Between(a, b, stats.Options{}), stats.Between(b, a, stats.Options{})
		near := func(x, y float64) bool { return math.Abs(x-y) <= 1e-12 }
		if !near(there.Center, -back.Center) || !near(there.Low, -back.High) || !near(there.P, back.P) {
			t.Fatalf("%+v\n%+v", there, back)
		}
		margin := math.Log1p(stats.DefaultMargin)
		beyond := max(there.Low-margin, -there.High-margin)
		if math.Abs(beyond) > 1e-9 && (beyond > 0) != (there.P < 0.05) {
			t.Fatalf("the interval [%v, %v] has p %v", there.Low, there.High, there.P)
		}
	})
}

func TestNeedForChange(t *testing.T) {
	c := stats.Change{Center: 0.05, Low: 0.01, High: 0.09, HasInterval: true, Builds: [2]int{6, 8}}
	// The half width 0.04 must come down to 0.05-log(1.02) = 0.0302: 8 * (0.04/0.0302)^2 = 14.04.
	if got := stats.NeedForChange(c, stats.Options{}); got != 15 {
		t.Errorf("%d builds", got)
	}
	c.Center = math.Log1p(0.02)
	if got := stats.NeedForChange(c, stats.Options{}); got != 0 {
		t.Errorf("at the margin %d builds", got)
	}
}

// machines are two worlds with the same truth but for their own baselines, which no delta shows, and their own noise.
func machines(noise simulate.Noise, shifts []float64, change float64) (before, after simulate.World) {
	before = simulate.World{Noise: noise, Shifts: shifts, RoundSD: 0.0163, BuildSD: 0.003, MinRounds: 10, MaxRounds: 40}
	after = before
	after.BuildSD, after.RoundSD = 0.009, 0.025
	after.Shifts = slices.Clone(shifts)
	for i := range after.Shifts {
		after.Shifts[i] += change
	}
	return before, after
}

// TestChangeIntervalsHoldTheTruth: the 95% interval of a change between two machines of unlike noise and unlike numbers of
// builds must hold the true change in 93% to 97% of experiments.
func TestChangeIntervalsHoldTheTruth(t *testing.T) {
	const trials, change = 2000, 0.04
	options := stats.Options{Quantile: gather.Remembered(stats.StudentQuantile)}
	for n, noise := range simulate.Noises() {
		for _, builds := range [][2]int{{6, 6}, {6, 16}, {16, 6}} {
			before, after := machines(noise, []float64{0.10}, change)
			held := 0
			for _, c := range simulate.Parallel(trials, func(i int) stats.Change {
				return stats.Between(measure(before, uint64(i)<<8|uint64(n), builds[0], options), measure(after, uint64(i)<<8|uint64(n)|1<<60, builds[1], options), options)
			}) {
				if c.Low <= change && change <= c.High {
					held++
				}
			}
			share := float64(held) / trials
			t.Logf("%s, %v builds: %.1f%% hold the truth", noise, builds, 100*share)
			if share < 0.93 || share > 0.97 {
				t.Errorf("%s, %v builds: %.1f%% of the 95%% intervals hold the true change", noise, builds, 100*share)
			}
		}
	}
}

// measure estimates the first cell of a world from so many builds.
func measure(w simulate.World, seed uint64, builds int, o stats.Options) stats.Estimate {
	e, cell := w.Start(seed), make([]stats.Build, builds)
	for b := range cell {
		cell[b] = e.Build().Cell(0)
	}
	return stats.Compare(cell, o)
}

// judged are the verdicts on all changes between two runs, as a comparison gives them.
func judged(before, after simulate.Run, o stats.Options) []stats.Verdict {
	changes, p := make([]stats.Change, len(before.Cells)), make([]float64, len(before.Cells))
	for i := range changes {
		changes[i] = stats.Between(before.Cells[i], after.Cells[i], o)
		p[i] = changes[i].P
	}
	floor := stats.ChangeFloor(stats.NoiseFloor(before.Null), stats.NoiseFloor(after.Null))
	verdicts := make([]stats.Verdict, len(changes))
	for i, adjusted := range stats.Holm(p) {
		verdicts[i] = stats.JudgeChange(changes[i], adjusted, floor, stats.LowerBetter, o)
	}
	return verdicts
}

// TestFalseRegressionsAreRare compares runs of fourteen deltas on two machines, whose true change is none or exactly the
// margin: at most one comparison in twenty may call anything regressed or improved. Half of the runs stop by what they see.
func TestFalseRegressionsAreRare(t *testing.T) {
	const trials = 150
	quantile := gather.Remembered(stats.StudentQuantile)
	for _, c := range []struct {
		name           string
		change, margin float64
		sequential     bool
	}{
		{"nothing changed, no margin to hide in", 0, 1e-6, false},
		{"nothing changed, no margin to hide in, looks", 0, 1e-6, true},
		{"nothing changed", 0, 0.02, false},
		{"changed by just the margin", math.Log1p(0.02), 0.02, false},
		{"changed by just the margin, looks", math.Log1p(0.02), 0.02, true},
	} {
		wrong, all := 0, 0
		for n, noise := range simulate.Noises() {
			before, after := machines(noise, slices.Repeat([]float64{0.1}, family), c.change)
			before.MinRounds, before.MaxRounds, after.MinRounds, after.MaxRounds = 4, 8, 4, 8
			o := stats.Options{Margin: c.margin, Sequential: c.sequential, Quantile: quantile}
			stop := func(e stats.Estimate) bool {
				return c.sequential && stats.Resolved(e, family, 0, stats.Options{Sequential: true, Quantile: quantile})
			}
			for _, claimed := range simulate.Parallel(trials, func(i int) bool {
				seed := uint64(i)<<8 | uint64(n)
				return slices.ContainsFunc(judged(before.Run(seed, 10, o, stop), after.Run(seed|1<<60, 10, o, stop), o), func(v stats.Verdict) bool {
					return v == stats.Regressed || v == stats.Improved
				})
			}) {
				all++
				if claimed {
					wrong++
				}
			}
		}
		t.Logf("%s: %d of %d comparisons claim a change", c.name, wrong, all)
		if wrong > all/20 {
			t.Errorf("%s: %d of %d comparisons claim a change beyond the margin", c.name, wrong, all)
		}
	}
}

// TestRegressionsAreFound: one delta of fourteen that grew by 5% must be found, and the others called the same.
func TestRegressionsAreFound(t *testing.T) {
	const trials = 200
	before, after := machines(simulate.Normal, slices.Repeat([]float64{0.1}, family), 0)
	after.Shifts[3] += 0.05
	found, same := 0, 0
	for _, verdicts := range simulate.Parallel(trials, func(i int) []stats.Verdict {
		keepOn := func(stats.Estimate) bool { return false }
		return judged(before.Run(uint64(i), 10, stats.Options{}, keepOn), after.Run(uint64(i)|1<<60, 10, stats.Options{}, keepOn), stats.Options{})
	}) {
		for c, v := range verdicts {
			switch {
			case c == 3 && v == stats.Regressed:
				found++
			case c != 3 && v == stats.Same:
				same++
			}
		}
	}
	t.Logf("found in %d of %d, %d of %d others called the same", found, trials, same, trials*(family-1))
	if found < 80*trials/100 {
		t.Errorf("a regression of 5%% was found in %d of %d comparisons", found, trials)
	}
	if same < 80*trials*(family-1)/100 {
		t.Errorf("%d of %d deltas that did not change were called the same", same, trials*(family-1))
	}
}

// TestFindableIsFoundInEverySecondTry shifts one of a family by the size that is said to be findable.
func TestFindableIsFoundInEverySecondTry(t *testing.T) {
	const trials, members = 400, 14
	found, said := 0, 0.0
	draw := func(seed uint64, shift float64) stats.Estimate {
		world := simulate.World{Noise: simulate.Normal, Shifts: []float64{shift}, BuildSD: 0.01, MinRounds: 1, MaxRounds: 1}
		return world.Run(seed, 8, stats.Options{}, func(stats.Estimate) bool { return false }).Cells[0]
	}
	for i := range uint64(trials) {
		said += stats.Findable(stats.Between(draw(i, 0), draw(i|1<<40, 0), stats.Options{}), members, 0, stats.Options{}) / trials
	}
	for i := range uint64(trials) {
		c := stats.Between(draw(i, 0), draw(i|1<<40, said), stats.Options{})
		if stats.JudgeChange(c, c.P*members, 0, stats.LowerBetter, stats.Options{}) == stats.Regressed {
			found++
		}
	}
	if share := float64(found) / trials; share < 0.35 || share > 0.65 {
		t.Errorf("a change of %.2f%%, said to be findable, is found in %.0f%% of tries", 100*said, 100*share)
	}
	if !math.IsInf(stats.Findable(stats.Change{}, 1, 0, stats.Options{}), 1) {
		t.Error("without an interval something can be found")
	}
}

// TestUnpairedIsWelchs holds the interval of files that were not measured in turn against Welch's, and its coverage against a known truth.
func TestUnpairedIsWelchs(t *testing.T) {
	const trials, truth = 3000, 0.05
	held := 0
	for i := range uint64(trials) {
		random := rand.New(rand.NewPCG(i, 3))
		cell, baseline := make([]float64, 3), make([]float64, 3)
		for k := range cell {
			cell[k], baseline[k] = 5+truth+0.03*random.NormFloat64(), 5+0.01*random.NormFloat64()
		}
		e := stats.Unpaired(stats.Estimate{}, cell, baseline, stats.Options{})
		if e.Low <= truth && truth <= e.High {
			held++
		}
		if outside := e.Low > 0 || e.High < 0; outside != (e.P < 0.05) {
			t.Fatalf("[%v, %v] with p %v", e.Low, e.High, e.P)
		}
	}
	if share := float64(held) / trials; share < 0.935 || share > 0.975 {
		t.Errorf("%.1f%% of the 95%% intervals hold the truth", 100*share)
	}
	if e := stats.Unpaired(stats.Estimate{}, []float64{1, 2}, []float64{1, 2, 3}, stats.Options{}); e.HasInterval || e.Builds != 2 || e.Center != -0.5 {
		t.Errorf("two files: %+v", e)
	}
}
