package main

import (
	"fmt"
	"io"
	"math"

	"netdelta/stats"
	"netdelta/stats/simulate"
)

const (
	family    = 14 // deltas that are judged together
	maxBuilds = 24
)

// rule is a way to decide that a delta needs no more builds.
type rule struct {
	name    string
	options stats.Options
	stop    func(stats.Estimate) bool
}

func rules() []rule {
	plain, sequential := stats.Options{}, stats.Options{Sequential: true}
	margin := math.Log1p(stats.DefaultMargin)
	inside := func(e stats.Estimate) bool { return e.Low >= -margin && e.High <= margin }
	return []rule{
		{"never: always 24 builds", plain, func(stats.Estimate) bool { return false }},
		{"as soon as the verdict is known", plain, func(e stats.Estimate) bool {
			return inside(e) || (e.Low > 0 || e.High < 0) && e.P < 0.05/family
		}},
		{"half width <= margin/2", plain, func(e stats.Estimate) bool { return e.HalfWidth() <= margin/2 }},
		{"Resolved, no price for looking", plain, func(e stats.Estimate) bool { return stats.Resolved(e, family, 0, plain) }},
		{"**Resolved, Sequential**", sequential, func(e stats.Estimate) bool { return stats.Resolved(e, family, 0, sequential) }},
	}
}

// stopping is what becomes of runs under a rule: the share of intervals that hold the truth, the shares of runs with
// any claim (without the noise floor and with it), and the mean builds of a delta.
type stopping struct{ held, claimed, floored, builds float64 }

// printStopping prints what looking after each build does to coverage and to false claims.
func printStopping(w io.Writer, trials int) {
	scatters, truths := []float64{0.0075, 0.0125, 0.0175, 0.025, 0.04}, []float64{0, 0.01, 0.015, 0.0198, 0.025, 0.05}
	fmt.Fprintf(w, "Runs of %d deltas, looked at after each build from the %dth to the %dth; margin 2%%; %d runs (%d where all deltas\n", family, stats.FirstLook, maxBuilds, trials/10, trials/2)
	fmt.Fprintf(w, "are null) for each of %d scatters of build means (0.75%% to 4%%) and %d true deltas (0 to 5%%). Least, most: over all these.\n", len(scatters), len(truths))
	fmt.Fprintf(w, "False claims: of runs whose deltas are all null, the worst scatter. Builds: mean at 1.25%% and 0.\n\n")
	fmt.Fprintf(w, "| rule | least coverage | most coverage | false claims | with the noise floor | builds |\n|---|---|---|---|---|---|\n")
	for _, r := range rules() {
		least, most, builds, worst := 1.0, 0.0, 0.0, stopping{}
		for s, scatter := range scatters {
			for _, truth := range truths {
				runs := max(trials/10, 1)
				if truth == 0 {
					runs = max(trials/2, 1) // rare events take more
				}
				c := stoppingCase(r, scatter, truth, runs)
				least, most = min(least, c.held), max(most, c.held)
				if truth == 0 {
					worst = stopping{claimed: max(worst.claimed, c.claimed), floored: max(worst.floored, c.floored)}
					if s == 1 {
						builds = c.builds
					}
				}
			}
		}
		fmt.Fprintf(w, "| %s | %.1f%% | %.1f%% | %.1f%% | %.1f%% | %.1f |\n", r.name, 100*least, 100*most, 100*worst.claimed, 100*worst.floored, builds)
	}
}

// stoppingCase tries a rule on deltas that are all alike.
func stoppingCase(r rule, scatter, truth float64, trials int) stopping {
	shifts := make([]float64, family)
	for c := range shifts {
		shifts[c] = truth
	}
	world := simulate.World{Noise: simulate.Normal, Shifts: shifts, BuildSD: scatter / math.Sqrt(1.5), MinRounds: 1, MaxRounds: 1}
	share := func(claims int) float64 { return float64(min(claims, 1)) / float64(trials) }
	var sum stopping
	for _, one := range simulate.Parallel(trials, func(i int) stopping {
		run := world.Run(uint64(i), maxBuilds, r.options, r.stop)
		one := stopping{builds: float64(run.Builds) / float64(trials*family)}
		for _, e := range run.Cells {
			if e.Low <= truth && truth <= e.High {
				one.held += 1 / float64(trials*family)
			}
		}
		if truth == 0 {
			adjusted := stats.Holm(run.P())
			one.claimed = share(countClaims(run, adjusted, 0, r.options))
			one.floored = share(countClaims(run, adjusted, stats.NoiseFloor(run.Null), r.options))
		}
		return one
	}) {
		sum = stopping{sum.held + one.held, sum.claimed + one.claimed, sum.floored + one.floored, sum.builds + one.builds}
	}
	return sum
}

// countClaims counts the deltas that are called slower or faster.
func countClaims(run simulate.Run, adjusted []float64, floor float64, o stats.Options) int {
	n := 0
	for c, e := range run.Cells {
		if v := stats.Judge(e, adjusted[c], floor, stats.LowerBetter, o); v == stats.Slower || v == stats.Faster {
			n++
		}
	}
	return n
}
