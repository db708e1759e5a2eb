package main

import (
	"fmt"
	"io"
	"math"

	"netdelta/stats"
	"netdelta/stats/simulate"
)

// printFloor prints what the candidates for a noise floor do when set-ups keep an error that rebuilding doesn't remove.
func printFloor(w io.Writer, trials int) {
	trials = max(trials/4, 1)
	floors := []struct {
		name string
		of   func(null stats.Estimate) float64
	}{
		{"none", func(stats.Estimate) float64 { return 0 }},
		{"center of the null check", func(n stats.Estimate) float64 { return math.Abs(n.Center) }},
		{"its half width", stats.Estimate.HalfWidth},
		{"**its far end (NoiseFloor)**", stats.NoiseFloor},
	}
	kept := []float64{0, 0.0025, 0.005}
	fmt.Fprintf(w, "Runs of %d deltas over 10 builds of 20 rounds (scatter of a burst 1.6%%, of builds 0.3%%), %d runs each; margin 0.1%%, so\n", family, trials)
	fmt.Fprintf(w, "that Same hides nothing. Columns: the error that a set-up keeps through the run.\n\n| floor |")
	for _, k := range kept {
		fmt.Fprintf(w, " false claims in 100 null deltas, kept error %.2f%% |", 100*k)
	}
	fmt.Fprintf(w, " a true 1%% found, kept 0 | a true 2%% found, kept 0 |\n|---|---|---|---|---|---|\n")
	rows := make([][]float64, len(floors))
	try := func(kept, truth float64) {
		options, shifts := stats.Options{Margin: 0.001}, make([]float64, family)
		for c := range shifts {
			shifts[c] = truth
		}
		world := simulate.World{Noise: simulate.Normal, Shifts: shifts, RoundSD: roundSD, BuildSD: buildSD, SetupSD: kept, MinRounds: 20, MaxRounds: 20}
		runs := simulate.Parallel(trials, func(i int) []int {
			run := world.Run(uint64(i), 10, options, func(stats.Estimate) bool { return false })
			adjusted, claims := stats.Holm(run.P()), make([]int, len(floors))
			for f := range floors {
				claims[f] = countClaims(run, adjusted, floors[f].of(run.Null), options)
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
	for _, k := range kept {
		try(k, 0)
	}
	try(0, 0.01)
	try(0, 0.02)
	for f, row := range rows {
		fmt.Fprintf(w, "| %s | %.1f | %.1f | %.1f | %.0f%% | %.0f%% |\n", floors[f].name, row[0], row[1], row[2], row[3], row[4])
	}
}
