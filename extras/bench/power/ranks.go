package main

import (
	"fmt"
	"io"
	"math"

	"netdelta/stats"
	"netdelta/stats/simulate"
)

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
