package main

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strings"

	"netdelta/stats"
	"netdelta/stats/simulate"
)

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
