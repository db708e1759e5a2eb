package stats

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sort"
)

// Verdict is what an estimate says in one word.
type Verdict string

// The verdicts.
const (
	Slower     Verdict = "slower"     // worse than the baseline, whatever the metric
	Faster     Verdict = "faster"     // better than the baseline
	Same       Verdict = "same"       // any change is smaller than the margin
	Unresolved Verdict = "unresolved" // the measurements do not tell
)

// Better says which way a metric improves.
type Better string

// The directions.
const (
	LowerBetter  Better = "lower"  // latency, loss
	HigherBetter Better = "higher" // throughput
)

// Judge gives the verdict on an estimate.
//
//   - Same: the whole interval lies within the margin, measured on the log scale so that a ratio and its inverse are
//     treated alike: from -log(1+margin) to +log(1+margin). A change that is real but inside the margin is Same.
//   - Slower, Faster: the interval excludes no change, pAdjusted (by Holm, over all deltas of the run that are judged
//     together) is below Options.ClaimLevel, and the change exceeds noiseFloor (see NoiseFloor; 0 for none).
//   - Unresolved: anything else. An estimate without an interval, a NaN anywhere, and a negative or infinite floor
//     can give nothing better.
//
// A better that is neither direction gives Unresolved in place of Slower and Faster.
func Judge(e Estimate, pAdjusted float64, noiseFloor float64, better Better, o Options) Verdict {
	o, _ = o.filled()
	if !e.valid() {
		return Unresolved
	}
	if e.within(math.Log1p(o.Margin)) {
		return Same
	}
	excludesNone := e.Low > 0 || e.High < 0
	significant := pAdjusted >= 0 && pAdjusted < o.ClaimLevel()
	if !excludesNone || !significant || !(noiseFloor >= 0 && math.Abs(e.Center) > noiseFloor) {
		return Unresolved
	}
	return better.judge(e.Center, Slower, Faster)
}

// judge is the one verdict for a change for the worse, the other for one for the better.
func (b Better) judge(center float64, worse, better Verdict) Verdict {
	switch {
	case b == LowerBetter && center > 0, b == HigherBetter && center < 0:
		return worse
	case b == LowerBetter, b == HigherBetter:
		return better
	}
	return Unresolved
}

// valid says whether there is an interval, and a finite one that holds its center.
func (e Estimate) valid() bool { return e.HasInterval && holds(e.Low, e.Center, e.High) }

// holds says whether bounds are finite and have the center between them.
func holds(low, center, high float64) bool {
	return low <= center && center <= high && !math.IsInf(low, 0) && !math.IsInf(high, 0)
}

// within says whether the whole interval lies inside +-margin, a log.
func (e Estimate) within(margin float64) bool { return e.Low >= -margin && e.High <= margin }

// NoiseFloor is the size below which a change is not called real: what the null check of a setting, the baseline against its
// A/A control, leaves possible. run are the null checks of all settings that are measured alike, own among them, in any order.
//
// A null check that misses zero by more than its interval explains has found an error that no number of builds averages out,
// such as a set-up that keeps a bad place in memory throughout; the deltas hold the same kind of error, and their intervals don't
// show it. How far a null check reaches is its center and two standard errors; the center or the error alone would not
// cover it (docs/adr/0056). The floor is the median reach over the run, since one control of few builds knows little of its own
// setting and nothing of others. Where a setting's own null check excludes no difference, that setting has its own reach.
//
// Without a null check of at least two builds it is infinite.
func NoiseFloor(own Estimate, run ...Estimate) float64 { return NewRunFloor(run...).NoiseFloor(own) }

// RunFloor is the part of a noise floor that all settings of a run share.
type RunFloor struct {
	checks  int     // null checks in the run
	reaches float64 // the median of those that are usable, infinite where none is
}

// NewRunFloor takes the null checks of a run together.
func NewRunFloor(run ...Estimate) RunFloor {
	f := RunFloor{checks: len(run), reaches: math.Inf(1)}
	var reaches []float64
	for _, null := range run {
		if reach, usable := null.reach(); usable {
			reaches = append(reaches, reach)
		}
	}
	if len(reaches) > 0 {
		f.reaches = Median(reaches)
	}
	return f
}

// NoiseFloor is the function of this name for a setting of the run, by its own null check.
func (f RunFloor) NoiseFloor(own Estimate) float64 {
	reach, usable := own.reach()
	if usable && (f.checks == 0 || own.valid() && (own.Low > 0 || own.High < 0)) {
		return reach
	}
	return f.reaches
}

// reach is how far from zero a null check leaves the truth possible.
func (e Estimate) reach() (reach float64, usable bool) {
	means := finite(e.Locations)
	if len(means) < 2 {
		return 0, false
	}
	return math.Abs(Mean(means)) + 2*math.Sqrt(varianceOf(means)/float64(len(means))), true
}

// Holm corrects the p values of a family so that the chance of even one false claim in it stays below the level
// each is then held against (Holm 1979): valid however the tests depend on one another, and never weaker than
// Bonferroni. The result is in the order of p. A p that is not in [0,1] corrects to NaN and counts in the family.
func Holm(p []float64) []float64 {
	order, out := ranked(p)
	highest := 0.0
	for rank, i := range order {
		highest = max(highest, min(1, p[i]*float64(len(p)-rank)))
		out[i] = highest
	}
	return out
}

// ranked gives the positions of the valid p values in ascending order of p, and a result that is NaN everywhere.
func ranked(p []float64) (order []int, out []float64) {
	out = make([]float64, len(p))
	for i, v := range p {
		out[i] = math.NaN()
		if v >= 0 && v <= 1 {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p[a], p[b]) })
	return order, out
}

// FirstLook is the number of builds before which Resolved stops nothing: the fewer builds, the more often their scatter is small
// by luck, and a rule that stops on small scatter picks just those.
const FirstLook = 6

// Resolved says whether a runner that adds build after build, and looks after each, may stop measuring this delta, one
// of a family that is judged together against a noise floor. Use it with Options.Sequential, and correct by Holm.
//
// Stopping as soon as the verdict is not Unresolved would stop on luck: a delta at the margin is looked at until it
// once seems inside, and the 95% interval then holds the truth in 90% of runs. So precision comes first: nothing
// stops before FirstLook, nor before the half width is at most half the margin (for a delta above 5 margins, a tenth of the delta).
// What width an interval has tells little of where it lies, so stopping on it is nearly harmless. Beyond that, one of:
//
//   - the interval lies within the margin: Same;
//   - no change is excluded at the level of the whole family (Bonferroni), so that no later build will undo the claim, and the
//     delta exceeds the floor;
//   - the half width is at most a quarter of the margin: what is still open then is as good as at the margin.
//
// The little bias that is left is paid for by Options.Sequential. docs/adr/0056 has the simulations.
func Resolved(e Estimate, family int, floor float64, o Options) bool {
	o, _ = o.filled()
	if !e.valid() || e.Builds < FirstLook {
		return false
	}
	margin, half := math.Log1p(o.Margin), e.HalfWidth()
	if half > max(margin/2, math.Abs(e.Center)/10) {
		return false
	}
	if e.within(margin) || half <= margin/4 {
		return true
	}
	return math.Abs(e.Center) > max(floor, half*o.stretch(family, float64(e.Builds-1)))
}

// stretch is how many times as wide as the interval one must be that excludes no change for a whole family (Bonferroni).
func (o Options) stretch(family int, freedom float64) float64 {
	return o.quantile(1-o.ClaimLevel()/2/float64(max(family, 1)), freedom) / o.quantile(1-o.Level()/2, freedom)
}

// Needed is about how many builds would settle an unresolved delta, one of a family, if it is what it looks like: the interval
// narrows with the root of the builds and with their number, and must lie either inside the margin, or so far from no change that the
// claim holds for the family and exceeds the floor. It is 0 where no number of builds up to 1000 would do, as for a delta that
// is smaller than the floor.
func Needed(e Estimate, family int, floor float64, o Options) int {
	const most = 1000
	o, _ = o.filled()
	if !e.HasInterval {
		return e.Need
	}
	n, center := float64(e.Builds), math.Abs(e.Center)
	if !(n > 1) {
		return 0
	}
	inside, beyond := math.Log1p(o.Margin)-center, 0.0
	if center > floor {
		beyond = center
	}
	if inside < 0 && beyond == 0 {
		return 0 // neither comes nearer
	}
	one := e.HalfWidth() / o.quantile(1-o.Level()/2, n-1)
	build := one * one * n // the variance of one build
	if e.runs.Deviation > 0 {
		build = varianceOf(finite(e.Locations))
	}
	more := 1 + sort.Search(most-e.Builds, func(i int) bool {
		builds := float64(e.Builds + 1 + i)
		sum := squaredError{build / builds, builds - 1}.plus(e.runs.squared())
		half := o.quantile(1-o.Level()/2, sum.freedom) * math.Sqrt(sum.value)
		return half <= inside || half*o.stretch(family, sum.freedom) < beyond
	})
	if e.Builds+more > most {
		return 0
	}
	return e.Builds + more
}

// What Options take when they are left zero.
const (
	DefaultConfidence = 0.95
	DefaultMargin     = 0.02
	DefaultMinBuilds  = 3
)

// Options of an estimate. The zero value is valid and means the defaults.
type Options struct {
	// Confidence of the interval, in (0,1); 0 means 0.95.
	Confidence float64
	// Margin within which a change does not matter, as a share: 0.02 is 2%. Zero means 0.02.
	Margin float64
	// MinBuilds is how many builds an interval takes, at least 2; 0 means 3. An interval of two holds the truth as often as it says, but
	// is 13 times as wide as its standard error.
	MinBuilds int
	// Sequential says that the builds were not fixed beforehand: somebody looked, and stopped or went on by what was
	// seen, as a runner does that asks Resolved. Looking has a price: the interval is then made with two
	// thirds of the allowance for error (96.7% in place of 95%) and p is held against a quarter of it, so that what is
	// called 95% comes true.
	Sequential bool
	// Quantile is StudentQuantile where the caller remembers what it asked for; nil computes each. A large run asks for a few of them a hundred
	// thousand times.
	Quantile func(p, freedom float64) float64
}

// OptionError says which option was out of range and what is used in its stead.
type OptionError struct {
	Option string
	Value  float64
	Used   float64
}

// Error names the option, its value and the value used.
func (e *OptionError) Error() string {
	return fmt.Sprintf("%s %g is out of range: %g is used", e.Option, e.Value, e.Used)
}

// filled replaces zeros by the defaults, and nonsense by the defaults with a warning.
func (o Options) filled() (Options, []error) {
	var warnings []error
	fill := func(name string, value *float64, valid bool, normal float64) {
		if *value != 0 && !valid {
			warnings = append(warnings, &OptionError{name, *value, normal})
		}
		if !valid {
			*value = normal
		}
	}
	fill("confidence", &o.Confidence, o.Confidence > 0 && o.Confidence < 1, DefaultConfidence)
	fill("margin", &o.Margin, o.Margin > 0 && o.Margin < 1, DefaultMargin)
	builds := float64(o.MinBuilds)
	fill("least number of builds", &builds, o.MinBuilds >= 2, DefaultMinBuilds)
	o.MinBuilds = int(builds)
	return o, warnings
}

// The shares of the allowance for error that are left when there were looks before the final answer. Simulated with
// Resolved, in the worst cases: without them the 95% interval holds the truth in 92% of runs and 14% of runs without a
// true delta claim one; with them it is 93% and 5%, and with the noise floor 3%.
const (
	spentInterval = 2.0 / 3
	spentClaim    = 1.0 / 4
)

// Level is the chance of error that an interval is made with: 1-Confidence, and two thirds of it when Sequential.
func (o Options) Level() float64 { return o.level(spentInterval) }

// ClaimLevel is what a corrected p must stay below for a claim: 1-Confidence, and a quarter of it when Sequential.
func (o Options) ClaimLevel() float64 { return o.level(spentClaim) }

func (o Options) level(share float64) float64 {
	sequential := o.Sequential
	o, _ = o.filled()
	if sequential {
		return (1 - o.Confidence) * share
	}
	return 1 - o.Confidence
}
