package stats

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/combin"
	"gonum.org/v1/gonum/stat/distuv"
)

// Change is how far a delta moved from one run to another, with its uncertainty. All is on the natural log scale: the
// ratio of the two ratios is exp(Center).
type Change struct {
	// Center is the new delta less the old one, NaN where either run has none.
	Center float64
	// Low and High bound the interval. Without an interval both are NaN.
	Low, High float64
	// HasInterval says whether both runs have builds enough for one.
	HasInterval bool
	// P is the p value of the hypothesis that the change is no larger than Options.Margin, whichever way: it is below
	// 1-confidence when the whole interval lies beyond the margin on one side, and 1 without an interval.
	P float64
	// Builds are the builds that the estimate rests on in the old run and in the new one.
	Builds [2]int
	// Need is how many builds each run takes for an interval.
	Need int
	// Warnings say what looks odd.
	Warnings []error

	scatter, freedom float64 // standard error of Center, and what it is worth
}

// HalfWidth is half the width of the interval, NaN without one.
func (c Change) HalfWidth() float64 { return (c.High - c.Low) / 2 }

// Between holds the delta of a new run against the same delta of an old one, both from Compare.
//
// The runs are independent: nothing pairs a build of one with a build of the other, and on two machines builds need not
// scatter alike. So the interval is Welch's (1947): Student's t over one number for each build, with the variances of the
// two runs kept apart and Satterthwaite's degrees of freedom. What moves the baseline moves the cell in the same round and
// is not in the deltas, however far the machines are apart.
//
// What a run keeps through all of its builds is not in the interval, since no build shows it: see ChangeFloor.
func Between(before, after Estimate, o Options) Change {
	o, warnings := o.filled()
	c := Change{Center: after.Center - before.Center, Low: math.NaN(), High: math.NaN(), P: 1, Need: o.MinBuilds, Warnings: warnings}
	x, y := finite(before.Locations), finite(after.Locations)
	c.Builds = [2]int{len(x), len(y)}
	if len(x) < o.MinBuilds || len(y) < o.MinBuilds {
		return c
	}
	u, v := sampleVariance(x)/float64(len(x)), sampleVariance(y)/float64(len(y))
	c.HasInterval = true
	largest := max(math.Abs(before.Center), math.Abs(after.Center))
	if u+v <= 1e-24*largest*largest { // rounding of the means apart
		c.Low, c.High = c.Center, c.Center
		if math.Abs(c.Center) > math.Log1p(o.Margin) {
			c.P = 2 / combin.GeneralizedBinomial(float64(len(x)+len(y)), float64(len(x))) // the chance that all of one run lie on one side of the other's
		}
		c.Warnings = append(c.Warnings, fmt.Errorf("comparing %d builds with %d: %w", len(x), len(y), ErrNoVariation))
		return c
	}
	return c.spanned(squaredError{u, float64(len(x) - 1)}.plus(squaredError{v, float64(len(y) - 1)}), o)
}

// spanned is the change with the interval and p that the squared error of its center gives.
func (c Change) spanned(s squaredError, o Options) Change {
	c.scatter, c.freedom = math.Sqrt(s.value), s.freedom
	half := tQuantile(1-o.Level()/2, c.freedom) * c.scatter
	c.Low, c.High, c.P = c.Center-half, c.Center+half, 1
	if beyond := (math.Abs(c.Center) - math.Log1p(o.Margin)) / c.scatter; beyond > 0 {
		c.P = 2 * distuv.StudentsT{Mu: 0, Sigma: 1, Nu: c.freedom}.Survival(beyond)
	}
	return c
}

// ChangeFloor is the size below which a change between two runs is not called real: what both runs' null checks leave
// possible together. before and after are the NoiseFloor of each, 0 for a run without a null check; errors that two runs
// keep are independent, so their floors add as squares.
func ChangeFloor(before, after float64) float64 { return math.Hypot(before, after) }

// The verdicts on a change, in addition to Same and Unresolved.
const (
	Regressed Verdict = "regressed" // worse by more than the margin, whatever the metric
	Improved  Verdict = "improved"  // better by more than the margin
)

// JudgeChange gives the verdict on a change.
//
//   - Same: the whole interval lies within the margin, from -log(1+margin) to +log(1+margin).
//   - Regressed, Improved: the whole interval lies beyond the margin, pAdjusted (by Holm, over all changes that are judged
//     together) is below Options.ClaimLevel, and the change exceeds floor (see ChangeFloor). A change that is real but
//     perhaps inside the margin is neither: unlike Judge, which asks whether there is a difference at all, this asks
//     whether something became worse by more than one is ready to bear.
//   - Unresolved: anything else, and whatever has no interval, a NaN, an infinite floor or no direction.
func JudgeChange(c Change, pAdjusted, floor float64, better Better, o Options) Verdict {
	o, _ = o.filled()
	margin := math.Log1p(o.Margin)
	switch {
	case !c.valid():
		return Unresolved
	case c.Low >= -margin && c.High <= margin:
		return Same
	case c.Low <= margin && c.High >= -margin, !(pAdjusted >= 0 && pAdjusted < o.ClaimLevel()), !(floor >= 0 && math.Abs(c.Center) > floor):
		return Unresolved
	}
	return better.judge(c.Center, Regressed, Improved)
}

// valid says whether there is an interval, and a finite one that holds its center.
func (c Change) valid() bool { return c.HasInterval && holds(c.Low, c.Center, c.High) }

// NeedForChange is about how many builds each run takes to settle an unresolved change that is what it looks like: the
// interval narrows with the root of the builds, and must lie wholly inside the margin or wholly beyond it. It is 0
// where no number of builds up to 1000 would do, as for a change just at the margin.
func NeedForChange(c Change, o Options) int {
	const most = 1000
	o, _ = o.filled()
	if !c.HasInterval {
		return c.Need
	}
	builds := max(c.Builds[0], c.Builds[1])
	narrower := c.HalfWidth() / math.Abs(math.Abs(c.Center)-math.Log1p(o.Margin))
	need := float64(builds) * narrower * narrower
	if !(need <= most) {
		return 0
	}
	return max(builds+1, int(math.Ceil(need)))
}

// Findable is the smallest change that a comparison like this one finds in every second case, one of a family and against a floor: it lies
// beyond the margin by what the corrected p takes, and exceeds the floor. It is infinite without an interval.
func Findable(c Change, family int, floor float64, o Options) float64 {
	o, _ = o.filled()
	if !c.HasInterval {
		return math.Inf(1)
	}
	beyond := c.HalfWidth()
	if c.scatter > 0 {
		beyond = max(beyond, tQuantile(1-o.ClaimLevel()/2/float64(max(family, 1)), c.freedom)*c.scatter)
	}
	return max(math.Log1p(o.Margin)+beyond, floor)
}

// Prediction is what the figures of several runs say of another one.
type Prediction struct {
	// Center is the mean over runs, Low and High its confidence interval: where the mean of many such runs lies.
	Center, Low, High float64
	// NextLow and NextHigh are the prediction interval: where the figure of one more run will lie.
	NextLow, NextHigh float64
	Runs              int
}

// PredictRuns is how many runs a prediction takes. Of two the interval is Student's t with one degree of freedom, 16 times as wide as
// the two are apart.
const PredictRuns = 3

// Predict predicts another run from the figures of at least PredictRuns, one for each, made on days or boots like those that are
// meant. Whatever differs between runs is in it: what a boot or a day keeps, and the noise within each run. Both intervals are
// Student's t with the variance between runs; the one for another run is wider by the root of 1+Runs.
func Predict(figures []float64, o Options) (Prediction, bool) {
	o, _ = o.filled()
	x := finite(figures)
	n := float64(len(x))
	p := Prediction{Center: Mean(x), Runs: len(x)}
	if len(x) < PredictRuns {
		return p, false
	}
	half := tQuantile(1-(1-o.Confidence)/2, n-1) * math.Sqrt(sampleVariance(x)/n)
	p.Low, p.High = p.Center-half, p.Center+half
	p.NextLow, p.NextHigh = p.Center-half*math.Sqrt(n+1), p.Center+half*math.Sqrt(n+1)
	return p, true
}

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
	before, after := Median(left), Median(right)
	scatter := stepClip * MAD(append(less(left, before), less(right, after)...))
	a, b := clipped(left, before, scatter), clipped(right, after, scatter)
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

// about is the series less its mean.
func about(x []float64) []float64 { return less(x, Mean(x)) }

func less(x []float64, middle float64) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = v - middle
	}
	return y
}
