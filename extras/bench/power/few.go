package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/mathext"

	"netdelta/internal/gather"
	"netdelta/stats"
	"netdelta/stats/simulate"
)

// fewBuilds are the numbers of builds that the tests of a family are tried on.
func fewBuilds() []int { return []int{2, 3, 4, 6, 10} }

// familyTest gives corrected p values to deltas, by the locations of their builds.
type familyTest struct {
	name string
	p    func(cells []stats.Estimate) []float64
}

// familyTests lists the candidates; the first is the one that verdicts use.
func familyTests() []familyTest {
	return []familyTest{
		{"**own t, Holm**", func(cells []stats.Estimate) []float64 {
			return stats.Holm(each(cells, func(e stats.Estimate) float64 { return e.P }))
		}},
		{"moderated t, Holm", func(cells []stats.Estimate) []float64 { return stats.Holm(moderated(cells)) }},
		{"sign flips, step-down", signFlips},
	}
}

// land is a world by its name in a table.
type land struct {
	name  string
	world simulate.World
}

// lands are all noises with even builds, and all ways of builds under normal noise.
func lands(shift float64) []land {
	shifts := slices.Repeat([]float64{shift}, family)
	base := simulate.World{Noise: simulate.Normal, Shifts: shifts, RoundSD: roundSD, BuildSD: 0.005, MinRounds: 10, MaxRounds: 20}
	var all []land
	for _, noise := range simulate.Noises() {
		w := base
		w.Noise = noise
		all = append(all, land{string(noise), w})
	}
	for _, between := range simulate.Betweens()[1:] {
		w := base
		w.Between = between
		all = append(all, land{string(between), w})
	}
	return all
}

// printFew prints how the tests of a family and the intervals do on few builds.
func printFew(w io.Writer, trials int) {
	names := make([]string, 0)
	for _, l := range lands(0) {
		names = append(names, l.name)
	}
	head := fmt.Sprintf("| builds | %s |\n|---|---|%s\n", strings.Join(names, " | "), strings.Repeat("---|", len(names)))
	fmt.Fprintf(w, "Runs of %d null deltas of which any is called a difference, in percent (%d runs each; scatter of a burst 1.6%%, of builds\n", family, trials)
	fmt.Fprintf(w, "0.5%%; 10 to 20 rounds in a build; no margin, no noise floor). 5%% is allowed.\n\n| test %s", head)
	for t, test := range familyTests() {
		for _, builds := range fewBuilds() {
			fmt.Fprintf(w, "| %s | %d |", test.name, builds)
			for _, l := range lands(0) {
				claimed := count(l, builds, trials, func(cells []stats.Estimate) bool {
					return slices.ContainsFunc(familyTests()[t].p(cells), func(p float64) bool { return p < 1-confidence })
				})
				fmt.Fprintf(w, " %.1f%% |", 100*float64(claimed)/float64(trials))
			}
			fmt.Fprintln(w)
		}
	}
	fmt.Fprintf(w, "\nShare of the printed 95%% intervals that hold the truth, in the same worlds (a shift of 1%%).\n\n| interval %s", head)
	for _, builds := range fewBuilds() {
		fmt.Fprintf(w, "| Student's t over builds | %d |", builds)
		for _, l := range lands(0.01) {
			held := count(l, builds, trials, func(cells []stats.Estimate) bool { return cells[0].Low <= 0.01 && 0.01 <= cells[0].High })
			fmt.Fprintf(w, " %.1f%% |", 100*float64(held)/float64(trials))
		}
		fmt.Fprintln(w)
	}
	printFound(w, trials)
}

// printFound prints how often true deltas are found, with a build missing and without.
func printFound(w io.Writer, trials int) {
	sizes := []float64{0.02, 0.05, 0.10, 0.30}
	fmt.Fprintf(w, "\nHow often a true delta is found, all %d being alike (even builds, normal noise); in brackets when every delta but one lacks\none of its builds.\n\n| test | builds |", family)
	for _, size := range sizes {
		fmt.Fprintf(w, " %+.0f%% |", 100*size)
	}
	fmt.Fprintf(w, "\n|---|---|%s\n", strings.Repeat("---|", len(sizes)))
	for _, t := range []int{0, 2} {
		for _, builds := range []int{3, 4, 5, 6, 7, 10} {
			test := familyTests()[t]
			fmt.Fprintf(w, "| %s | %d |", test.name, builds)
			for _, size := range sizes {
				found := func(lose bool) float64 {
					n := count(lands(math.Log1p(size))[0], builds, trials/4, func(cells []stats.Estimate) bool {
						return test.p(lacking(cells, lose))[0] < 1-confidence
					})
					return 100 * float64(n) / float64(trials/4)
				}
				fmt.Fprintf(w, " %.0f%% (%.0f%%) |", found(false), found(true))
			}
			fmt.Fprintln(w)
		}
	}
}

// lacking takes a build from each cell but the first.
func lacking(cells []stats.Estimate, lose bool) []stats.Estimate {
	if !lose {
		return cells
	}
	out := slices.Clone(cells)
	for c := 1; c < len(out); c++ {
		locations := slices.Clone(out[c].Locations)
		locations[c%len(locations)] = math.NaN()
		out[c].Locations = locations
		out[c].P = out[c].PAgainst(0)
	}
	return out
}

// count is in how many trials something holds of the cells of a run of so many builds.
func count(l land, builds, trials int, holds func([]stats.Estimate) bool) int {
	n := 0
	for _, yes := range simulate.Parallel(trials, func(i int) bool {
		e, cells := l.world.Start(uint64(i)<<8|uint64(builds)), make([][]stats.Build, family)
		for range builds {
			sample := e.Build()
			for c := range cells {
				cells[c] = append(cells[c], sample.Cell(c))
			}
		}
		estimates := make([]stats.Estimate, family)
		for c := range cells {
			estimates[c] = stats.Compare(cells[c], stats.Options{MinBuilds: 2})
		}
		return holds(estimates)
	}) {
		if yes {
			n++
		}
	}
	return n
}

func each(cells []stats.Estimate, of func(stats.Estimate) float64) []float64 {
	return gather.Each(cells, of)
}

// moderated are p values of t statistics whose variances are drawn towards the family's (Smyth, "Linear models and empirical Bayes
// methods", 2004): few builds borrow degrees of freedom from the other deltas.
func moderated(cells []stats.Estimate) []float64 {
	variances := each(cells, func(e stats.Estimate) float64 {
		half := e.HalfWidth() / tQuantile(float64(e.Builds-1))
		return half * half * float64(e.Builds)
	})
	freedom := float64(cells[0].Builds - 1)
	logs := make([]float64, len(variances))
	for i, v := range variances {
		logs[i] = math.Log(v) - mathext.Digamma(freedom/2) + math.Log(freedom/2)
	}
	mean, spread := stats.Mean(logs), 0.0
	for _, x := range logs {
		spread += (x - mean) * (x - mean) / float64(len(logs)-1)
	}
	prior, center := 1e6, math.Exp(mean) // as good as infinitely many degrees of freedom
	if excess := spread - trigamma(freedom/2); excess > 0 {
		prior = min(prior, 2*inverseTrigamma(excess))
		center = math.Exp(mean + mathext.Digamma(prior/2) - math.Log(prior/2))
	}
	p := make([]float64, len(cells))
	for i, e := range cells {
		variance := (prior*center + freedom*variances[i]) / (prior + freedom)
		p[i] = twoSided(e.Center/math.Sqrt(variance/float64(e.Builds)), prior+freedom)
	}
	return p
}

func trigamma(x float64) float64 { return mathext.Zeta(2, x) }

// inverseTrigamma bisects: trigamma falls.
func inverseTrigamma(y float64) float64 {
	low, high := 1e-6, 1e6
	for range 100 {
		if middle := math.Sqrt(low * high); trigamma(middle) > y {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

// signFlips are p values by the step-down max-T method over all ways to give the builds signs (Westfall and Young 1993).
func signFlips(cells []stats.Estimate) []float64 {
	order := make([]int, len(cells))
	for i := range order {
		order[i] = i
	}
	observed := each(cells, func(e stats.Estimate) float64 { return score(e.Locations, 0) })
	slices.SortFunc(order, func(a, b int) int {
		if observed[a] > observed[b] {
			return -1
		}
		return 1
	})
	builds := len(cells[0].Locations)
	p, all := make([]float64, len(cells)), 1<<(builds-1)
	for signs := range all {
		highest := 0.0
		for k := len(order) - 1; k >= 0; k-- {
			i := order[k]
			if highest = max(highest, score(cells[i].Locations, signs)); highest >= observed[i]*(1-1e-9) {
				p[i] += 1 / float64(all)
			}
		}
	}
	for k := 1; k < len(order); k++ {
		p[order[k]] = max(p[order[k]], p[order[k-1]])
	}
	return p
}

// score is the t statistic of locations under signs as a normal deviate (Wallace 1959).
func score(locations []float64, signs int) float64 {
	n, sum, squares := 0.0, 0.0, 0.0
	for b, x := range locations {
		if math.IsNaN(x) {
			continue
		}
		if signs>>b&1 != 0 {
			x = -x
		}
		n, sum, squares = n+1, sum+x, squares+x*x
	}
	if n < 2 || squares == 0 {
		return 0
	}
	freedom := n - 1
	return (8*freedom + 1) / (8*freedom + 3) * math.Sqrt(-freedom*math.Log1p(-min(sum*sum/(n*squares), 1-1e-15)))
}
