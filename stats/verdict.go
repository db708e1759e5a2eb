package stats

import "math"

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

// NoiseFloor is the size below which a change is not called real in a run whose null check, the baseline against its
// twin, came out as null: the far end of its interval from zero. A null check that misses zero by more than its
// interval explains has found an error that no number of builds averages out, such as a set-up that keeps a bad place
// in memory throughout; the deltas hold the same kind of error, and their intervals don't show it. The far end covers
// it; the center or the half width alone would not (docs/statistics.md). Without an interval it is infinite.
func NoiseFloor(null Estimate) float64 {
	if !null.valid() {
		return math.Inf(1)
	}
	return max(math.Abs(null.Low), math.Abs(null.High))
}
