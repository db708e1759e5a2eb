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

// setting is one that was measured: its networks against the baseline, and each pair of them against one another.
type setting struct {
	cells   []stats.Estimate
	pairs   [][2]int
	direct  []stats.Estimate
	options stats.Options
}

// rankRule says of each pair whether the two are called different.
type rankRule struct {
	name   string
	differ func(s setting) []bool
}

func rankRules() []rankRule {
	return []rankRule{
		{"intervals against the baseline don't overlap", func(s setting) []bool {
			told := make([]bool, len(s.pairs))
			for i, p := range s.pairs {
				a, b := s.cells[p[0]], s.cells[p[1]]
				told[i] = a.Low > b.High || b.Low > a.High
			}
			return told
		}},
		{"**direct contrasts, Holm**", func(s setting) []bool {
			told := make([]bool, len(s.pairs))
			for i, p := range stats.Holm(each(s.direct, func(e stats.Estimate) float64 { return e.P })) {
				told[i] = p < s.options.Level()
			}
			return told
		}},
	}
}

// measureSetting carries out a setting in so many builds; where adaptive, networks that are resolved leave.
func measureSetting(w simulate.World, seed uint64, builds int, adaptive bool) setting {
	n := len(w.Shifts)
	e, s := w.Start(seed), setting{cells: make([]stats.Estimate, n), options: stats.Options{Sequential: adaptive}}
	cells, done, samples := make([][]stats.Build, n), make([]bool, n), []simulate.Sample{}
	for open := n; open > 0 && len(samples) < builds; {
		sample := e.Build()
		samples = append(samples, sample)
		for c := range cells {
			if done[c] {
				continue
			}
			cells[c] = append(cells[c], sample.Cell(c))
			s.cells[c] = stats.Compare(cells[c], s.options)
			if adaptive && stats.Resolved(s.cells[c], family, 0, s.options) {
				done[c] = true
				open--
			}
		}
	}
	for a := range n {
		for b := a + 1; b < n; b++ {
			var together []stats.Build
			for _, sample := range samples[:min(len(cells[a]), len(cells[b]))] {
				together = append(together, stats.Pair(sample[2+a], sample[2+b], sample[2+b]))
			}
			s.pairs, s.direct = append(s.pairs, [2]int{a, b}), append(s.direct, stats.Compare(together, s.options))
		}
	}
	return s
}

// printRanks prints how many pairs of networks that differ are called tied, and in how many settings two alike are called different.
func printRanks(w io.Writer, trials int) {
	truths := []struct {
		name     string
		percents []float64
	}{
		{"all differ", []float64{3, 3.5, 11, 11.7, 16, 30, 31}},
		{"three groups", []float64{3, 3, 3, 11, 11, 30, 30}},
		{"all alike", []float64{10, 10, 10, 10, 10, 10, 10}},
	}
	fmt.Fprintf(w, "Two settings of seven networks, 42 pairs (%d runs each; 20 rounds in a build; scatter of a burst 1.6%%, of builds 0.3%%). Tied: pairs of the\n", trials)
	fmt.Fprintf(w, "42 that differ in truth (by 3, 3.5, 11, 11.7, 16, 30, 31%%) and are called tied. False: settings of seven in which any two alike are called different,\n")
	fmt.Fprintf(w, "where there are three groups (3, 3, 3, 11, 11, 30, 30%%), and where all are alike.\n\n")
	fmt.Fprintf(w, "| rule | builds | tied of 42 | false, three groups | false, all alike |\n|---|---|---|---|---|\n")
	for _, rule := range rankRules() {
		for _, plan := range []struct {
			builds   int
			adaptive bool
			says     string
		}{{6, false, "6"}, {12, false, "12"}, {24, false, "24"}, {60, true, "until resolved"}} {
			fmt.Fprintf(w, "| %s | %s |", rule.name, plan.says)
			for i, truth := range truths {
				tied, wrong := judgeRanks(rule, truth.percents, plan.builds, plan.adaptive, trials)
				if i == 0 {
					fmt.Fprintf(w, " %.1f |", tied)
				} else {
					fmt.Fprintf(w, " %.1f%% |", 100*wrong)
				}
			}
			fmt.Fprintln(w)
		}
	}
}

// judgeRanks is how many of 42 pairs a rule calls tied that differ, and in what share of settings it is wrong about any pair.
func judgeRanks(rule rankRule, percents []float64, builds int, adaptive bool, trials int) (tied, wrong float64) {
	world := simulate.World{Noise: simulate.Normal, RoundSD: roundSD, BuildSD: buildSD, MinRounds: 20, MaxRounds: 20}
	for _, p := range percents {
		world.Shifts = append(world.Shifts, math.Log1p(p/100))
	}
	for _, s := range simulate.Parallel(trials, func(i int) setting { return measureSetting(world, uint64(i), builds, adaptive) }) {
		mistaken := false
		for i, told := range rule.differ(s) {
			a, b := world.Shifts[s.pairs[i][0]], world.Shifts[s.pairs[i][1]]
			switch {
			case !told && a != b:
				tied += 2 / float64(trials)
			case told && (a == b || (a < b) != (s.direct[i].Center < 0)):
				mistaken = true
			}
		}
		if mistaken {
			wrong += 1 / float64(trials)
		}
	}
	return tied, wrong
}
