package stats

import (
	"math"
	"slices"
)

// Step is a place at which a series changes its level.
type Step struct {
	// At is the index of the first value of the new level.
	At int
	// Change is the new level less the old one.
	Change float64
	// Score is the change in units of its error.
	Score float64
}

const (
	// stepValues is how many values a series has to have, stepLeast and stepShare how many each level has at least.
	stepValues = 10
	stepLeast  = 4
	stepShare  = 0.1
	// stepClip is how far a value may be from the middle of its level, in robust scatters: what is farther away counts as this far.
	stepClip = 3.0
)

// FindStep looks for a change of level in one of several series of log ratios that were measured together. Of builds of that many
// series without a step, about 1% or fewer have one found, in the worlds of package simulate (TestStepIsRarelyFoundWithoutOne). It finds
// a step of 5 times always, and one of 10% where that stands out of the noise (TestStepIsFound).
func FindStep(x []float64, series int) (Step, bool) {
	if len(x) < stepValues || slices.Max(x)-slices.Min(x) < stepMatters {
		return Step{}, false // levels differ by no more than their values
	}
	s, measured := largestStep(x)
	threshold := stepThreshold(len(x), series)
	if measured && math.Abs(s.Change) >= stepHuge && jumps(x, s.At) {
		threshold /= 3
	}
	return s, measured && math.Abs(s.Change) >= stepMatters && s.Score >= threshold
}

// stepMatters is the least change that is called a step, about 5%: the machine's own states move networks against each other by less.
const stepMatters = 0.049

// A change of e times within a value or two, which is stepJump times what values usually differ from the one before, can't be the slow
// wandering for which the threshold is so high: a third of the score is enough.
const (
	stepHuge = 1.0
	stepJump = 4.5
)

// jumps tells whether a series changes at once at a place.
func jumps(x []float64, at int) bool {
	const reach = 3
	usual := make([]float64, len(x)-1)
	for i := range usual {
		usual[i] = x[i+1] - x[i]
	}
	return math.Abs(Median(x[at:at+reach])-Median(x[at-reach:at])) >= stepJump*MAD(usual)
}

// stepThreshold is the score that one of these series reaches in 1% of builds without a step, in the worst world of simulations.
// Scores of short series have heavy tails, as Student's t has, so that more series raise it by more there.
func stepThreshold(values, series int) float64 {
	const simulated = 20.0
	n := float64(values)
	return (6.5 + 170/n) * math.Pow(max(1, float64(series)/simulated), 1/(n-2))
}

// largestStep is the place of a series at which its levels before and after differ most. Wild values are clipped, and the error
// allows for values that resemble their neighbours. measured is false for a series that is too short.
func largestStep(x []float64) (s Step, measured bool) {
	n := len(x)
	if n < stepValues || slices.ContainsFunc(x, math.IsNaN) {
		return Step{}, false
	}
	at := splitOf(smoothed(x))
	left, right := x[:at], x[at:]
	// Each level is clipped about its own middle, by the scatter of both.
	residuals := append(away(left), away(right)...)
	scatter := stepClip * MAD(residuals)
	a, b := clipped(left, Median(left), scatter), clipped(right, Median(right), scatter)
	s = Step{At: at, Change: Mean(b) - Mean(a)}
	rest := append(about(a), about(b)...)
	sum, product := 0.0, 0.0
	for i, v := range rest {
		sum += v * v
		if i > 0 {
			product += v * rest[i-1]
		}
	}
	variance := sum / float64(n-2)
	if variance <= 0 {
		if s.Change != 0 {
			s.Score = math.Inf(1)
		}
		return s, true
	}
	// A first-order autoregression; its estimate from a few values about two means is too low by about (2+4r)/n.
	r := product / sum
	r = min(max(r+(2+4*r)/float64(n), 0), stepMemory)
	s.Score = math.Abs(s.Change) / math.Sqrt(variance*(1/float64(len(a))+1/float64(len(b)))*(1+r)/(1-r))
	return s, true
}

// stepMemory is the most that values may be taken to resemble their neighbours.
const stepMemory = 0.95

// splitOf is where a series is best cut in two levels: where the sum of squares between them is largest.
func splitOf(x []float64) int {
	n, total := len(x), 0.0
	for _, v := range x {
		total += v
	}
	least := max(stepLeast, int(stepShare*float64(n)))
	best, at, sum := -1.0, least, 0.0
	for k := 1; k <= n-least; k++ {
		sum += x[k-1]
		if k < least {
			continue
		}
		between := sum/float64(k) - (total-sum)/float64(n-k)
		if score := between * between * float64(k) * float64(n-k); score > best {
			best, at = score, k
		}
	}
	return at
}

// smoothed is the series with each value replaced by the median of it and its neighbours, two on either side where there are so many:
// single wild values are gone, and edges stay where they are.
func smoothed(x []float64) []float64 {
	y := make([]float64, len(x))
	var few [5]float64
	for i := range x {
		reach := min(2, i, len(x)-1-i)
		near := few[:copy(few[:], x[i-reach:i+reach+1])]
		slices.Sort(near)
		y[i] = near[reach]
	}
	return y
}

// clipped is the series with nothing farther than this from a middle. Where most values are alike the scatter is none, and nothing is
// clipped.
func clipped(x []float64, middle, by float64) []float64 {
	y := slices.Clone(x)
	if by <= 0 {
		return y
	}
	for i, v := range y {
		y[i] = min(max(v, middle-by), middle+by)
	}
	return y
}

// away is the series less its median, about the series less its mean.
func away(x []float64) []float64 { return less(x, Median(x)) }

func about(x []float64) []float64 { return less(x, Mean(x)) }

func less(x []float64, middle float64) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = v - middle
	}
	return y
}
