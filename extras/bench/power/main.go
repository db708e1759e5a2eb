// Command power prints the tables of docs/statistics.md from simulation: coverage of the intervals, false claims, few builds,
// the stopping rule, power against measuring time, ranks, and machines with a state. It measures nothing and needs no network.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"time"

	"netdelta/extras/bench/harness"
	"netdelta/stats"
	"netdelta/stats/simulate"
)

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
