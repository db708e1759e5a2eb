package stats

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// Build is what one cell measured in one build of its network, paired with the baseline of the same rounds.
type Build struct {
	// Deltas are the paired differences of the logarithms, one for each round: see PairedDelta.
	Deltas []float64
	// Within are, optionally, the differences between the two halves of a burst, one for each round: the delta of
	// the odd transactions minus the delta of the even ones. They serve to split the variance and nothing else.
	Within []float64
}

// PairedDelta is the delta of one round: the log value of a cell less the mean of those of the baseline, which
// stands in the round twice. With logs of p50 it is the log of a ratio of latencies. It pairs the odd-even
// differences of Build.Within alike.
func PairedDelta(cell, baseline, twin float64) float64 { return cell - (baseline+twin)/2 }

// Estimate is a delta with its uncertainty. All is on the natural log scale: the ratio is exp(Center).
type Estimate struct {
	// Center is the mean over builds of the mean over rounds. It is NaN when nothing usable was measured.
	Center float64
	// Low and High bound the interval. Without an interval both are NaN.
	Low, High float64
	// HasInterval says whether there were builds enough for one.
	HasInterval bool
	// Need is how many builds an interval takes in all. Significance in a family takes more: see NeedFor.
	Need int
	// Builds and Rounds count what the estimate rests on.
	Builds, Rounds int
	// P is the p value of SignFlip over the build means, not corrected; 1 without any build.
	P float64
	// Variance is what a round's delta varies by, split by origin.
	Variance Variance
	// Warnings say what was left out or looks odd. They never come with a verdict that hides them: what a warning
	// is about either was left out, or leaves no interval.
	Warnings []error
}

// HalfWidth is half the width of the interval, NaN without one.
func (e Estimate) HalfWidth() float64 { return (e.High - e.Low) / 2 }

// Warnings of Compare. Match them with errors.Is.
var (
	// ErrNotFinite marks deltas that are NaN or infinite, as the logarithm of zero is. They are left out.
	ErrNotFinite = errors.New("not a finite number")
	// ErrNoRounds marks builds without a single usable round. They are left out.
	ErrNoRounds = errors.New("no usable round")
	// ErrNoVariation marks builds that agree to the last digit, as counts and virtual time may. The interval is then
	// a point.
	ErrNoVariation = errors.New("builds do not vary at all")
)

// Compare estimates the delta of a cell from its builds.
//
// The interval is Student's t over the build means, all builds weighing the same whatever their number of rounds.
// The bursts of one build share what that build happened to be, so they are one observation together. The mean is
// taken in each build, not a median or a trimmed mean: the baseline is the mean of two bursts, so where noise is
// skewed a delta is not symmetric about the truth, and a robust location misses it by the same amount in each
// build, which no number of builds would show. docs/statistics.md has the simulations.
//
// Bursts that were disturbed must be left out beforehand, on evidence other than their value.
func Compare(builds []Build, o Options) Estimate {
	o, warnings := o.filled()
	e := Estimate{Center: math.NaN(), Low: math.NaN(), High: math.NaN(), Need: o.MinBuilds, P: 1, Warnings: warnings}
	used := e.usable(builds)
	means := make([]float64, len(used))
	for i, b := range used {
		means[i] = Mean(b.Deltas)
		e.Rounds += len(b.Deltas)
	}
	e.Builds = len(means)
	e.Variance = split(used, means)
	if e.Builds == 0 {
		return e
	}
	e.Center = Mean(means)
	e.P = SignFlip(means, o.Seed)
	if e.Builds < o.MinBuilds {
		return e
	}
	spread := sampleVariance(means)
	if spread == 0 {
		e.Warnings = append(e.Warnings, fmt.Errorf("comparing %d builds: %w", e.Builds, ErrNoVariation))
	}
	half := tQuantile(0.5+o.Confidence/2, float64(e.Builds-1)) * math.Sqrt(spread/float64(e.Builds))
	e.Low, e.High, e.HasInterval = e.Center-half, e.Center+half, true
	return e
}

// maxLog bounds a believable delta on the log scale: a ratio of 10^130. Sums and squares of what lies within it
// cannot overflow.
const maxLog = 300

// usable leaves out what is not a number, and builds that are left with nothing, and warns of both.
func (e *Estimate) usable(builds []Build) []Build {
	kept := make([]Build, 0, len(builds))
	lost, empty := 0, 0
	for _, b := range builds {
		clean := Build{Deltas: believable(b.Deltas), Within: believable(b.Within)}
		lost += len(b.Deltas) - len(clean.Deltas)
		if len(clean.Deltas) == 0 {
			empty++
			continue
		}
		kept = append(kept, clean)
	}
	if lost > 0 {
		e.Warnings = append(e.Warnings, fmt.Errorf("leaving out %d rounds whose delta is %w: was a value zero or negative?", lost, ErrNotFinite))
	}
	if empty > 0 {
		e.Warnings = append(e.Warnings, fmt.Errorf("leaving out %d of %d builds: %w", empty, len(builds), ErrNoRounds))
	}
	return kept
}

// believable returns x itself when all of it lies within maxLog, else a copy of what does.
func believable(x []float64) []float64 {
	for i, v := range x {
		if !(math.Abs(v) <= maxLog) {
			kept := append([]float64(nil), x[:i]...)
			for _, v := range x[i:] {
				if math.Abs(v) <= maxLog {
					kept = append(kept, v)
				}
			}
			return kept
		}
	}
	return x
}

// tQuantile is the p-quantile of Student's t with the degrees of freedom.
func tQuantile(p, freedom float64) float64 {
	return distuv.StudentsT{Mu: 0, Sigma: 1, Nu: freedom}.Quantile(p)
}
