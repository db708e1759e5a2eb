package stats

import (
	"cmp"
	"encoding/binary"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
)

// stepDownExact is the largest number of builds for which StepDown counts every assignment of signs.
const stepDownExact = 13

// stepDownDraws stand in for all assignments beyond stepDownExact.
const stepDownDraws = 10_000

// StepDown gives the p values of a family of deltas, corrected so that the chance of even one false claim stays below
// the level they are held against: the step-down max-T method of Westfall and Young (1993) over sign flips. family
// holds, for each delta, its locations by build (Estimate.Locations) where position i is build i of the run, NaN
// where the delta was not measured; rows may end early.
//
// It promises what Holm promises, and asks for fewer builds: all deltas of a build change sign together, so the
// least p is 2/2^n for the whole family, where Holm multiplies it by the size of the family. At 95% a family of any
// size can be decided from 6 builds on (7 after looks); by Holm, fourteen deltas take 10 (11). It counts all assignments
// up to 13 builds, and beyond that draws 10,000 from seed, the observed one counted in. A delta with no usable location gets NaN.
func StepDown(family [][]float64, seed uint64) []float64 {
	out, rows, builds := make([]float64, len(family)), []row{}, 0
	for i, locations := range family {
		out[i] = math.NaN()
		if r := newRow(i, locations); r.squares > 0 {
			rows = append(rows, r)
			builds = max(builds, r.last+1)
		} else if len(finite(locations)) > 0 {
			out[i] = 1 // all zero: nothing to claim
		}
	}
	slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(b.observed, a.observed) })
	hits, total := make([]int, len(rows)), 0
	for signs := range assignments(builds, seed) {
		total++
		highest := math.Inf(-1)
		for i := len(rows) - 1; i >= 0; i-- {
			highest = max(highest, rows[i].score(rows[i].sum(signs)))
			if highest >= rows[i].threshold {
				hits[i]++
			}
		}
	}
	highest := 0.0
	for i, r := range rows {
		highest = max(highest, float64(hits[i])/float64(total))
		out[r.delta] = highest
	}
	return out
}

// assignments yields signs for the builds, a bit for each, set where the sign is turned: all that differ in more than
// turning every sign, or random ones. The observed assignment, no bit set, is the first.
func assignments(builds int, seed uint64) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		signs := make([]byte, (builds+7)/8+8)
		if builds <= stepDownExact {
			for word := range uint64(1) << max(0, builds-1) {
				binary.LittleEndian.PutUint64(signs, word)
				if !yield(signs) {
					return
				}
			}
			return
		}
		random := rand.New(rand.NewPCG(seed, 1))
		for range stepDownDraws + 1 {
			if !yield(signs) {
				return
			}
			for at := 0; at+8 <= len(signs); at += 8 {
				binary.LittleEndian.PutUint64(signs[at:], random.Uint64())
			}
		}
	}
}

// row is one delta of a family.
type row struct {
	delta, last int
	n           float64 // how many builds measured it
	squares     float64 // sum of their squares, the same under all signs
	observed    float64 // score
	threshold   float64 // observed, less what rounding may take off
	sums        [][256]float64
}

// newRow tabulates the sums of each eight builds under all signs, so that a sum takes one step for eight builds.
func newRow(delta int, locations []float64) row {
	r := row{delta: delta, sums: make([][256]float64, (len(locations)+7)/8)}
	// The score has no scale. Without one of its own, squares of tiny locations would come out as zero.
	scale, magnitude := 0.0, 0.0
	for _, v := range locations {
		if size := math.Abs(v); size <= maxLog {
			scale = max(scale, size)
		}
	}
	for build, v := range locations {
		if !(math.Abs(v) <= maxLog) {
			continue
		}
		if scale > 0 {
			v /= scale
		}
		r.n, r.squares, r.last = r.n+1, r.squares+v*v, build
		magnitude += math.Abs(v)
		for signs := range 256 {
			if signs>>(build%8)&1 == 0 {
				r.sums[build/8][signs] += v
			} else {
				r.sums[build/8][signs] -= v
			}
		}
	}
	sum := math.Abs(r.sum(make([]byte, len(r.sums))))
	r.observed, r.threshold = r.score(sum), r.score(max(0, sum-tieSlack*magnitude))
	return r
}

func (r row) sum(signs []byte) float64 {
	sum := 0.0
	for i := range r.sums {
		sum += r.sums[i][signs[i]]
	}
	return sum
}

// score is how far the delta stands out with this sum: a normal deviate that grows with the t statistic of its
// locations (Wallace 1959), so that deltas of different numbers of builds can be compared.
func (r row) score(sum float64) float64 {
	if r.n < 2 || r.squares == 0 {
		return 0
	}
	// t^2/(n-1) is share/(1-share). Builds that agree to the last digit would give infinity.
	share, nu := min(sum*sum/(r.n*r.squares), 1-1e-15), r.n-1
	return (8*nu + 1) / (8*nu + 3) * math.Sqrt(-nu*math.Log1p(-share))
}
