package stats

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
)

// stepDownExact is the largest number of builds for which StepDown counts every assignment of signs.
const stepDownExact = 14

// stepDownDraws stand in for all assignments beyond stepDownExact.
const stepDownDraws = 20_000

// StepDown gives the p values of a family of deltas, corrected so that the chance of even one false claim stays below
// the level they are held against: the step-down min-P method of Westfall and Young (1993) over sign flips. family
// holds, for each delta, its locations by build (Estimate.Locations) where position i is build i of the run, NaN
// where the delta was not measured; rows may end early.
//
// It promises what Holm promises, and asks for fewer builds: all deltas of a build change sign together, so the
// least p is 2/2^n for the whole family, where Holm multiplies it by the size of the family. At 95% a family of any
// size can be decided from 6 builds on; by Holm, fourteen deltas take 10. It counts all assignments up to 14 builds,
// and beyond that draws 20,000 from seed, the observed one counted in. A delta with no usable location gets NaN.
func StepDown(family [][]float64, seed uint64) []float64 {
	out, rows, builds := make([]float64, len(family)), []row{}, 0
	for i, locations := range family {
		out[i] = math.NaN()
		if r := newRow(i, locations); r.squares > 0 {
			r.observed = r.score(func(int) bool { return false })
			rows = append(rows, r)
			builds = max(builds, r.last+1)
		} else if len(finite(locations)) > 0 {
			out[i] = 1 // all zero: nothing to claim
		}
	}
	slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(b.observed, a.observed) })
	hits, total := make([]int, len(rows)), 0
	count := func(flipped func(build int) bool) {
		total++
		highest := math.Inf(-1)
		for i := len(rows) - 1; i >= 0; i-- {
			highest = max(highest, rows[i].score(flipped))
			if highest >= rows[i].observed*(1-1e-9) {
				hits[i]++
			}
		}
	}
	if builds <= stepDownExact {
		for word := range uint64(1) << max(0, builds-1) { // the last sign is left alone: scores are two-sided
			count(func(build int) bool { return word>>build&1 != 0 })
		}
	} else {
		drawSigns(builds, seed, count)
	}
	highest := 0.0
	for i, r := range rows {
		highest = max(highest, float64(hits[i])/float64(total))
		out[r.delta] = highest
	}
	return out
}

// drawSigns calls count with the observed signs and with random ones.
func drawSigns(builds int, seed uint64, count func(flipped func(build int) bool)) {
	random, words := rand.New(rand.NewPCG(seed, 1)), make([]uint64, (builds+63)/64)
	for range stepDownDraws + 1 {
		count(func(build int) bool { return words[build/64]>>(build%64)&1 != 0 })
		for i := range words {
			words[i] = random.Uint64()
		}
	}
}

// row is one delta of a family.
type row struct {
	delta, last int
	builds      []int
	values      []float64
	squares     float64 // sum of the squares, the same under all signs
	observed    float64
}

func newRow(delta int, locations []float64) row {
	r := row{delta: delta}
	for build, v := range locations {
		if math.Abs(v) <= maxLog {
			r.builds, r.values = append(r.builds, build), append(r.values, v)
			r.squares, r.last = r.squares+v*v, build
		}
	}
	return r
}

// score is how far the delta stands out under the signs: a normal deviate that grows with the t statistic of its
// locations (Wallace 1959), so that deltas of different numbers of builds can be compared.
func (r row) score(flipped func(build int) bool) float64 {
	sum := 0.0
	for i, v := range r.values {
		if flipped(r.builds[i]) {
			v = -v
		}
		sum += v
	}
	n := float64(len(r.values))
	if n < 2 {
		return 0
	}
	// t^2/(n-1) is share/(1-share). Builds that agree to the last digit would give infinity.
	share := min(sum*sum/(n*r.squares), 1-1e-15)
	nu := n - 1
	return (8*nu + 1) / (8*nu + 3) * math.Sqrt(-nu*math.Log1p(-share))
}
