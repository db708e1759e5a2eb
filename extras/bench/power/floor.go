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
