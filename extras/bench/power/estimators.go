// Command power prints the tables of docs/adr/0056-estimators-chosen-by-simulation.md from simulation: coverage of the intervals, false claims, few builds,
// the stopping rule, power against measuring time, ranks, and machines with a state. It measures nothing and needs no network.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	"gonum.org/v1/gonum/stat/distuv"

	"netdelta/extras/bench/harness"
	"netdelta/internal/gather"
	"netdelta/stats"
	"netdelta/stats/simulate"
)

// estimator is a way to an interval at 95%, to be held against the others.
type estimator struct {
	name     string
	interval func(builds []stats.Build, random *rand.Rand) (low, high float64)
}

// location reduces the deltas of one build to one number.
type location struct {
	name string
	of   func([]float64) float64
}

const confidence = 0.95

// estimators lists the candidates; the first is the one that package stats uses, called through its front door. The
// others see only the deltas.
func estimators() []estimator {
	mean := location{"mean", stats.Mean}
	return []estimator{
		{"**t, 20% trimmed mean of both pairings**", func(b []stats.Build, _ *rand.Rand) (float64, float64) {
			e := stats.Compare(b, stats.Options{})
			return e.Low, e.High
		}},
		student(mean),
		student(location{"10% trimmed mean", func(x []float64) float64 { return stats.TrimmedMean(x, 0.1) }}),
		student(location{"Hodges-Lehmann", stats.HodgesLehmann}),
		student(location{"median", stats.Median}),
		{"random effects, Hartung-Knapp", hartungKnapp},
		{"cluster bootstrap, percentile", bootstrap(mean, false)},
		{"cluster bootstrap, BCa", bootstrap(mean, true)},
		{"t over all rounds (no builds)", pooled},
	}
}

// tQuantile is half the width of a standardised interval of Student's t.
func tQuantile(freedom float64) float64 {
	return distuv.StudentsT{Sigma: 1, Nu: freedom}.Quantile(0.5 + confidence/2)
}

func means(builds []stats.Build, l location) []float64 {
	return gather.Each(builds, func(b stats.Build) float64 { return l.of(b.Deltas) })
}

func variance(x []float64) float64 {
	mean, sum := stats.Mean(x), 0.0
	for _, v := range x {
		sum += (v - mean) * (v - mean)
	}
	return sum / float64(len(x)-1)
}

// student is the t interval over one number for each build.
func student(l location) estimator {
	return estimator{"t, " + l.name, func(builds []stats.Build, _ *rand.Rand) (float64, float64) {
		m := means(builds, l)
		half := tQuantile(float64(len(m)-1)) * math.Sqrt(variance(m)/float64(len(m)))
		return stats.Mean(m) - half, stats.Mean(m) + half
	}}
}

// hartungKnapp weighs builds by the inverse of their variance (between builds by DerSimonian and Laird, within builds
// pooled), with the interval of Hartung and Knapp.
func hartungKnapp(builds []stats.Build, _ *rand.Rand) (low, high float64) {
	m := means(builds, location{"mean", stats.Mean})
	var squares, freedom float64
	for i, b := range builds {
		for _, d := range b.Deltas {
			squares += (d - m[i]) * (d - m[i])
		}
		freedom += float64(len(b.Deltas) - 1)
	}
	weighted := func(between float64) (center, total, totalSquares, q float64) {
		sum := 0.0
		for i, b := range builds {
			w := 1 / (between + squares/freedom/float64(len(b.Deltas)))
			total, totalSquares, sum = total+w, totalSquares+w*w, sum+w*m[i]
		}
		center = sum / total
		for i, b := range builds {
			w := 1 / (between + squares/freedom/float64(len(b.Deltas)))
			q += w * (m[i] - center) * (m[i] - center)
		}
		return center, total, totalSquares, q
	}
	n := float64(len(m))
	_, total, totalSquares, q := weighted(0)
	center, total, _, q := weighted(max(0, (q-(n-1))/(total-totalSquares/total)))
	half := tQuantile(n-1) * math.Sqrt(q/(n-1)/total)
	return center - half, center + half
}

const resamples = 999

// bootstrap resamples builds, with the percentile interval or the bias-corrected and accelerated one (Efron 1987).
// Resampling rounds within the drawn builds too would only add variance that the build means already hold.
func bootstrap(l location, bca bool) func([]stats.Build, *rand.Rand) (float64, float64) {
	normal := distuv.UnitNormal
	return func(builds []stats.Build, random *rand.Rand) (low, high float64) {
		m := means(builds, l)
		center, drawn, below := stats.Mean(m), make([]float64, resamples), 0.0
		for i := range drawn {
			for range m {
				drawn[i] += m[random.IntN(len(m))]
			}
			drawn[i] /= float64(len(m))
			if drawn[i] < center {
				below++
			}
		}
		slices.Sort(drawn)
		at := func(p float64) float64 { return drawn[int(math.Round(p*(resamples-1)))] }
		if !bca {
			return at((1 - confidence) / 2), at((1 + confidence) / 2)
		}
		var cubes, squares float64
		for _, v := range m {
			d := center - v
			cubes, squares = cubes+d*d*d, squares+d*d
		}
		bias, acceleration := normal.Quantile(below/resamples), -cubes/(6*math.Pow(squares, 1.5))
		adjust := func(p float64) float64 {
			z := bias + normal.Quantile(p)
			return normal.CDF(bias + z/(1-acceleration*z))
		}
		return at(adjust((1 - confidence) / 2)), at(adjust((1 + confidence) / 2))
	}
}

// pooled takes every round for independent: what a tool does that knows no builds.
func pooled(builds []stats.Build, _ *rand.Rand) (low, high float64) {
	var all []float64
	for _, b := range builds {
		all = append(all, b.Deltas...)
	}
	half := tQuantile(float64(len(all)-1)) * math.Sqrt(variance(all)/float64(len(all)))
	return stats.Mean(all) - half, stats.Mean(all) + half
}

// twoSided is the p value of a t statistic.
func twoSided(t, freedom float64) float64 {
	return 2 * distuv.StudentsT{Sigma: 1, Nu: freedom}.Survival(math.Abs(t))
}

// tried is how one estimator fared in one experiment.
type tried struct {
	covered bool
	width   float64
}

// printCoverage prints how often each estimator's 95% interval holds the truth, by noise and number of builds.
func printCoverage(w io.Writer, trials int) {
	const truth = 0.01
	fmt.Fprintf(w, "Share of %d simulated 95%% intervals that hold the truth (a shift of 1%%; 10-60 rounds in a build;\n", trials)
	fmt.Fprintf(w, "scatter of a burst 1.6%%, of builds 0.5%%), and their median half width under\nnormal and under stalling noise.\n\n")
	fmt.Fprintf(w, "| estimator | builds |")
	for _, noise := range simulate.Noises() {
		fmt.Fprintf(w, " %s |", noise)
	}
	fmt.Fprintf(w, " half width, normal | stalling |\n|---|---|%s---|---|\n", strings.Repeat("---|", len(simulate.Noises())))
	for k, candidate := range estimators() {
		for _, builds := range []int{6, 12, 24} {
			fmt.Fprintf(w, "| %s | %d |", candidate.name, builds)
			half := map[simulate.Noise]float64{}
			for n, noise := range simulate.Noises() {
				world := simulate.World{Noise: noise, Shifts: []float64{truth}, RoundSD: 0.0163, BuildSD: 0.005, MinRounds: 10, MaxRounds: 60}
				runs := simulate.Parallel(trials, func(i int) tried {
					e, cell := world.Start(uint64(i)<<8|uint64(n)), []stats.Build(nil)
					for range builds {
						cell = append(cell, e.Build().Cell(0))
					}
					low, high := candidate.interval(cell, rand.New(rand.NewPCG(uint64(i), uint64(k))))
					return tried{low <= truth && truth <= high, (high - low) / 2}
				})
				covered, widths := 0, make([]float64, 0, trials)
				for _, r := range runs {
					if r.covered {
						covered++
					}
					widths = append(widths, r.width)
				}
				fmt.Fprintf(w, " %.1f%% |", 100*float64(covered)/float64(trials))
				half[noise] = stats.Median(widths)
			}
			fmt.Fprintf(w, " %.2f%% | %.2f%% |\n", 100*math.Expm1(half[simulate.Normal]), 100*math.Expm1(half[simulate.Stalling]))
		}
	}
}

func main() {
	table := flag.String("table", "all", "which table: all, coverage, few, stopping, floor, power, ranks or states")
	trials := flag.Int("trials", 4000, "simulated experiments for each figure")
	harness.Main("power", func(context.Context) error { return tables(*table, *trials) })
}

func tables(name string, trials int) error {
	tables := []struct {
		name  string
		print func(io.Writer, int)
	}{{"coverage", printCoverage}, {"few", printFew}, {"stopping", printStopping}, {"floor", printFloor}, {"power", printPower}, {"ranks", printRanks}, {"states", printStates}}
	known := []string{"all"}
	found := false
	for _, t := range tables {
		known = append(known, t.name)
		if name == "all" || name == t.name {
			found = true
			t.print(os.Stdout, trials)
			fmt.Println()
		}
	}
	if !found || trials < 1 {
		return harness.UsageError(fmt.Sprintf("no table %q of %d trials: choose one of %s, and at least one trial", name, trials, strings.Join(known, ", ")))
	}
	return nil
}

// What bursts and builds scatter by on a two-core machine, for the p50 of tcp-rr: a delta of one round scatters by 2%
// (1.63% for each burst, by sqrt(1.5)), builds by 0.3%.
const (
	roundSD = 0.0163
	buildSD = 0.003
	burst   = 5 * time.Millisecond
	between = 1 * time.Millisecond // warm-up of a burst, and going to the next
	rebuild = 300 * time.Millisecond
)

// printPower prints how often a true shift is found, against the time that the measurement takes.
func printPower(w io.Writer, trials int) {
	trials = max(trials/2, 1)
	margins := []float64{0.005, 0.01, 0.02}
	fmt.Fprintf(w, "Verdicts on one delta of %d, the others being null (%d runs each; the rest of 100%% is unresolved). Bursts of %v and %v\n", family, trials, burst, between)
	fmt.Fprintf(w, "between them, %v to build; a delta of one round scatters by 2%%, builds by 0.3%%. The number of builds is fixed.\n\n", rebuild)
	fmt.Fprintf(w, "| builds x rounds | time, 20 cells | 40 cells | half width | margin | true 1%%: slower | same | true 2%%: slower | same | true 0: same | claimed |\n|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, plan := range []struct{ builds, rounds int }{{6, 10}, {6, 20}, {6, 60}, {8, 20}, {12, 20}, {12, 60}, {24, 20}, {24, 60}} {
		took := func(cells int) float64 {
			return (time.Duration(plan.builds) * (rebuild + time.Duration(plan.rounds*cells)*(burst+between))).Seconds()
		}
		one, two, none := power(plan.builds, plan.rounds, 0.01, margins, trials), power(plan.builds, plan.rounds, 0.02, margins, trials), power(plan.builds, plan.rounds, 0, margins, trials)
		for m, margin := range margins {
			fmt.Fprintf(w, "| %d x %d | %.0f s | %.0f s | %.2f%% | %g%% | %.0f%% | %.0f%% | %.0f%% | %.0f%% | %.0f%% | %.1f%% |\n", plan.builds, plan.rounds, took(20), took(40),
				100*math.Expm1(one[m].half), 100*margin, one[m].claimed, one[m].same, two[m].claimed, two[m].same, none[m].same, none[m].claimed)
		}
	}
}

// found is how often the shifted delta of a plan was claimed or found the same, in percent of runs, and its median half width.
type found struct{ claimed, same, half float64 }

// power carries a plan through and judges by each margin.
func power(builds, rounds int, shift float64, margins []float64, trials int) []found {
	shifts := make([]float64, family)
	shifts[0] = math.Log1p(shift)
	world := simulate.World{Noise: simulate.Normal, Shifts: shifts, RoundSD: roundSD, BuildSD: buildSD, MinRounds: rounds, MaxRounds: rounds}
	runs := simulate.Parallel(trials, func(i int) []found {
		run := world.Run(uint64(i), builds, stats.Options{}, func(stats.Estimate) bool { return false })
		adjusted, floor, out := stats.Holm(run.P())[0], stats.NoiseFloor(run.Null), make([]found, len(margins))
		for m, margin := range margins {
			out[m].half = run.Cells[0].HalfWidth()
			switch stats.Judge(run.Cells[0], adjusted, floor, stats.LowerBetter, stats.Options{Margin: margin}) {
			case stats.Slower, stats.Faster:
				out[m].claimed = 1
			case stats.Same:
				out[m].same = 1
			}
		}
		return out
	})
	out := make([]found, len(margins))
	for m := range margins {
		widths := make([]float64, 0, trials)
		for _, run := range runs {
			out[m].claimed += 100 * run[m].claimed / float64(trials)
			out[m].same += 100 * run[m].same / float64(trials)
			widths = append(widths, run[m].half)
		}
		out[m].half = stats.Median(widths)
	}
	return out
}
