package main

import (
	"fmt"
	"io"
	"math"
	"strings"

	"netdelta/stats"
	"netdelta/stats/simulate"
)

// printFloor prints what the candidates for a noise floor do when set-ups keep an error that rebuilding doesn't remove.
func printFloor(w io.Writer, trials int) {
	trials = max(trials/4, 1)
	floors := []struct {
		name string
		of   func(null stats.Estimate, run []stats.Estimate) float64
	}{
		{"none", func(stats.Estimate, []stats.Estimate) float64 { return 0 }},
		{"center of the null check", func(n stats.Estimate, _ []stats.Estimate) float64 { return math.Abs(n.Center) }},
		{"its half width", func(n stats.Estimate, _ []stats.Estimate) float64 { return n.HalfWidth() }},
		{"its far end", func(n stats.Estimate, _ []stats.Estimate) float64 { return max(-n.Low, n.High) }},
		{"**its reach: center and two standard errors (NoiseFloor of one setting)**", func(n stats.Estimate, _ []stats.Estimate) float64 { return stats.NoiseFloor(n) }},
		{"**NoiseFloor over six settings**", func(n stats.Estimate, run []stats.Estimate) float64 { return stats.NoiseFloor(n, run...) }},
	}
	kept := []float64{0, 0.0025, 0.005}
	fmt.Fprintf(w, "Runs of %d deltas over 10 builds of 20 rounds (scatter of a burst 1.6%%, of builds 0.3%%), %d runs each; margin 0.1%%, so\n", family, trials)
	fmt.Fprintf(w, "that Same hides nothing. Columns: false claims in 100 null deltas, by the error that a set-up keeps through the run; how often a true delta\n")
	fmt.Fprintf(w, "is found where none is kept; and the same where the null checks have 3 builds alone.\n\n| floor |")
	for _, control := range []string{"", "; control of 3"} {
		for _, k := range kept {
			fmt.Fprintf(w, " kept %.2f%%%s |", 100*k, control)
		}
		fmt.Fprintf(w, " a true 1%% found%s | a true 2%% found%s |", control, control)
	}
	fmt.Fprintf(w, "\n|---|%s\n", strings.Repeat("---|", 10))
	rows := make([][]float64, len(floors))
	try := func(builds int, kept, truth float64) {
		options, shifts := stats.Options{Margin: 0.001}, make([]float64, family)
		for c := range shifts {
			shifts[c] = truth
		}
		world := simulate.World{Noise: simulate.Normal, Shifts: shifts, RoundSD: roundSD, BuildSD: buildSD, SetupSD: kept, MinRounds: 20, MaxRounds: 20}
		runs := simulate.Parallel(trials, func(i int) []int {
			run := world.Run(uint64(i), 10, options, func(stats.Estimate) bool { return false })
			adjusted, claims, nulls := stats.Holm(run.P()), make([]int, len(floors)), []stats.Estimate{nullFirst(run.Null, builds)}
			for other := range 5 {
				nulls = append(nulls, nullOf(world, uint64(i)+uint64(other+1)<<32, builds))
			}
			for f := range floors {
				claims[f] = countClaims(run, adjusted, floors[f].of(nulls[0], nulls), options)
			}
			return claims
		})
		for f := range floors {
			sum := 0
			for _, claims := range runs {
				sum += claims[f]
			}
			rows[f] = append(rows[f], 100*float64(sum)/float64(trials*family))
		}
	}
	for _, builds := range []int{10, 3} {
		for _, k := range kept {
			try(builds, k, 0)
		}
		try(builds, 0, 0.01)
		try(builds, 0, 0.02)
	}
	for f, row := range rows {
		fmt.Fprintf(w, "| %s |", floors[f].name)
		for k, x := range row {
			if k%5 < 3 {
				fmt.Fprintf(w, " %.1f |", x)
			} else {
				fmt.Fprintf(w, " %.0f%% |", x)
			}
		}
		fmt.Fprintln(w)
	}
}

// nullOf is the null check of a setting without cells.
func nullOf(world simulate.World, seed uint64, builds int) stats.Estimate {
	world.Shifts = nil
	e, null := world.Start(seed), make([]stats.Build, builds)
	for b := range null {
		null[b] = e.Build().Null()
	}
	return stats.Compare(null, stats.Options{})
}

// nullFirst is a null check of its first builds alone.
func nullFirst(null stats.Estimate, builds int) stats.Estimate {
	few := make([]stats.Build, builds)
	for b := range few {
		few[b].Deltas = []float64{null.Locations[b]}
	}
	return stats.Compare(few, stats.Options{})
}

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
