// Package stats turns paired measurements into estimates, p values and verdicts. It is pure: samples in, estimates
// out, no clock, no files, and all randomness from a seed that the caller passes.
//
// The unit of replication is the build, not the burst: two builds of one network differ by more than the bursts
// within a build show, so an interval over bursts would be too narrow. docs/statistics.md has the model, and the
// simulations by which each method here was chosen.
package stats

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// Build is what one cell measured in one build of its network, paired with the baseline of the same rounds. Make it
// with Pair.
type Build struct {
	// Deltas are the paired differences of the logarithms, one for each round: see PairedDelta.
	Deltas []float64
	// HalfGaps are, one for each round, half of what the two baselines of the round differ by. With them a delta can be
	// split into the cell against either baseline, and stalled rounds can be trimmed without a bias: see
	// Compare. Without them (or when there are not as many of them as of Deltas) each build counts with its plain mean.
	HalfGaps []float64
	// Within are, optionally, the differences between the two halves of a burst, one for each round: the delta of
	// the odd transactions minus the delta of the even ones. They serve to split the variance and nothing else.
	Within []float64
}

// PairedDelta is the delta of one round: the log value of a cell less the mean of the two log values of the
// baseline, which stands in the round twice. With logs of p50 it is the log of a ratio of latencies. It pairs the odd-even
// differences of Build.Within alike.
func PairedDelta(cell, baseline, control float64) float64 { return cell - (baseline+control)/2 }

// Pair pairs the log values of a cell with the log values of the baseline and of its A/A control, round by round. Rounds beyond the
// shortest of the three are ignored. Where the baseline stands once, and for the null check, pass it as its own A/A control:
// Pair(a, b, b) is baseline a against b.
func Pair(cell, baseline, control []float64) Build {
	rounds := min(len(cell), len(baseline), len(control))
	b := Build{Deltas: make([]float64, rounds), HalfGaps: make([]float64, rounds)}
	for r := range rounds {
		b.Deltas[r] = PairedDelta(cell[r], baseline[r], control[r])
		b.HalfGaps[r] = (baseline[r] - control[r]) / 2
	}
	return b
}

// trim is the share cut from either end of a build's pairs.
const trim = 0.2

// location is the delta of a build that is believable. It makes the build's pairs in room.
func (b Build) location(room *[]float64) float64 {
	if !b.paired() {
		return Mean(b.Deltas)
	}
	return trimmedMean(b.pairs(room), trim)
}

// pairs are the differences of the cell from either baseline, two in each round; there are none without HalfGaps. They are in room until
// it is used again.
func (b Build) pairs(room *[]float64) []float64 {
	if !b.paired() {
		return nil
	}
	pairs := slices.Grow((*room)[:0], 2*len(b.Deltas))
	for r, d := range b.Deltas {
		pairs = append(pairs, d-b.HalfGaps[r], d+b.HalfGaps[r])
	}
	*room = pairs
	return pairs
}

func (b Build) paired() bool { return len(b.HalfGaps) == len(b.Deltas) }

// Estimate is a delta with its uncertainty. All is on the natural log scale: the ratio is exp(Center).
type Estimate struct {
	// Center is the mean over builds of each build's location. It is NaN when nothing usable was measured.
	Center float64
	// Low and High bound the interval. Without an interval both are NaN.
	Low, High float64
	// HasInterval says whether there were builds enough for one.
	HasInterval bool
	// Need is how many builds an interval takes in all.
	Need int
	// Builds and Rounds count what the estimate rests on.
	Builds, Rounds int
	// Locations are the deltas of the builds, in the order given; NaN for a build that was left out.
	Locations []float64
	// P is the p value against no change (PAgainst), not corrected; 1 with fewer than two builds.
	P float64
	// Variance is what a round's delta varies by, split by origin (Compare).
	Variance Variance
	// Warnings say what was left out or looks odd. They never come with a verdict that hides them: what a warning
	// is about either was left out, or leaves no interval.
	Warnings []error

	scatter, freedom float64 // of Unpaired and ForAnotherRun: standard error of Center, and what it is worth
	runs             Spread  // of ForAnotherRun
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
// The interval is Student's t over one number for each build, all builds weighing the same whatever their number of
// rounds: the bursts of one build share what that build happened to be, so they are one observation together.
//
// That number is the mean of the middle 60% of all differences of the cell from either baseline, two in each round.
// Each of these is a burst less a burst, symmetric about the truth however skewed the noise, so trimming is fair.
// The deltas themselves are not symmetric, since the baseline in them is a mean of two bursts: a trimmed mean or a
// median of deltas misses the truth by the same amount in every build, and no number of builds shows it.
// docs/adr/0056-estimators-chosen-by-simulation.md has the simulations.
//
// Bursts that were disturbed must be left out beforehand, on evidence other than their value.
func Compare(builds []Build, o Options) Estimate {
	e, used := locate(builds, o)
	e.Variance = split(used, finite(e.Locations))
	return e
}

// Locate is Compare without the variance, which takes most of the time.
func Locate(builds []Build, o Options) Estimate {
	e, _ := locate(builds, o)
	return e
}

// locate returns the builds that it used, too.
func locate(builds []Build, o Options) (Estimate, []Build) {
	o, warnings := o.filled()
	e := Estimate{Center: math.NaN(), Low: math.NaN(), High: math.NaN(), Need: o.MinBuilds, P: 1, Warnings: warnings}
	used := e.usable(builds)
	means := finite(e.Locations)
	for _, b := range used {
		e.Rounds += len(b.Deltas)
	}
	e.Builds = len(means)
	if e.Builds == 0 {
		return e, used
	}
	e.Center = Mean(means)
	e.P = e.PAgainst(0)
	if e.Builds < o.MinBuilds {
		return e, used
	}
	spread := varianceOf(means)
	if spread == 0 {
		e.Warnings = append(e.Warnings, fmt.Errorf("comparing %d builds: %w", e.Builds, ErrNoVariation))
	}
	half := o.quantile(1-o.Level()/2, float64(e.Builds-1)) * math.Sqrt(spread/float64(e.Builds))
	e.Low, e.High, e.HasInterval = e.Center-half, e.Center+half, true
	return e, used
}

// VisitsHalfWidth is how precise a delta over so many visits will be that is held against the mean of two visits to the baseline's state
// each: half the width of its interval, in standard deviations of what visits to one state scatter by.
func VisitsHalfWidth(visits int, o Options) float64 {
	o, _ = o.filled()
	return tQuantile(1-o.Level()/2, float64(visits-1)) * math.Sqrt(1.5/float64(visits))
}

// PAgainst is the two-sided p of the hypothesis that the true delta is at, by the Student's t that the interval is made with:
// p is below 5% where a 95% interval excludes at. It needs no more builds the larger the family is, as a permutation does.
//
// Builds that agree to the last digit, as counts and rounded figures may, have no scatter to hold a difference against: there it
// is the chance that so many builds lie on one side of at, 2/2^n.
func (e Estimate) PAgainst(at float64) float64 {
	if e.freedom > 0 {
		return 2 * distuv.StudentsT{Mu: 0, Sigma: 1, Nu: e.freedom}.Survival(math.Abs(e.Center-at)/e.scatter)
	}
	means := finite(e.Locations)
	n := float64(len(means))
	if n < 2 {
		return 1
	}
	away, spread := Mean(means)-at, varianceOf(means)
	switch {
	case away == 0:
		return 1
	case spread == 0:
		return math.Exp2(1 - n)
	}
	return 2 * distuv.StudentsT{Mu: 0, Sigma: 1, Nu: n - 1}.Survival(math.Abs(away)/math.Sqrt(spread/n))
}

// varianceOf is the sample variance, 0 where rounding of the mean explains it.
func varianceOf(means []float64) float64 {
	spread, center := sampleVariance(means), Mean(means)
	if spread <= 1e-24*center*center {
		return 0
	}
	return spread
}

// maxLog bounds a believable delta on the log scale: a ratio of 10^130. Sums and squares of what lies within it
// cannot overflow.
const maxLog = 300

// usable leaves out what is not a number, and builds that are left with nothing, and warns of both.
func (e *Estimate) usable(builds []Build) []Build {
	kept := make([]Build, 0, len(builds))
	e.Locations = make([]float64, 0, len(builds))
	lost, empty := 0, 0
	var room []float64
	for _, b := range builds {
		clean := b.believable()
		lost += len(b.Deltas) - len(clean.Deltas)
		e.Locations = append(e.Locations, clean.location(&room)) // NaN of nothing
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

// believable is the build without the rounds whose values are NaN, infinite or beyond maxLog.
func (b Build) believable() Build {
	good := func(v float64) bool { return math.Abs(v) <= maxLog }
	bad := func(v float64) bool { return !good(v) }
	if !slices.ContainsFunc(b.Deltas, bad) && !slices.ContainsFunc(b.HalfGaps, bad) && !slices.ContainsFunc(b.Within, bad) && (b.paired() || len(b.HalfGaps) == 0) {
		return b // as nearly always
	}
	clean := Build{Within: slices.DeleteFunc(slices.Clone(b.Within), bad)}
	for r, d := range b.Deltas {
		switch {
		case !b.paired() && good(d):
			clean.Deltas = append(clean.Deltas, d)
		case b.paired() && good(d) && good(b.HalfGaps[r]):
			clean.Deltas, clean.HalfGaps = append(clean.Deltas, d), append(clean.HalfGaps, b.HalfGaps[r])
		}
	}
	return clean
}

// tQuantile is the p-quantile of Student's t with the degrees of freedom.
func tQuantile(p, freedom float64) float64 {
	return distuv.StudentsT{Mu: 0, Sigma: 1, Nu: freedom}.Quantile(p)
}

// StudentQuantile is the p-quantile of Student's t with the degrees of freedom, for Options that remember it.
func StudentQuantile(p, freedom float64) float64 { return tQuantile(p, freedom) }

// quantile is StudentQuantile, as the options remember it.
func (o Options) quantile(p, freedom float64) float64 {
	if o.Quantile == nil {
		return tQuantile(p, freedom)
	}
	return o.Quantile(p, freedom)
}

// finite copies the values that are neither NaN nor infinite.
func finite(x []float64) []float64 {
	return slices.DeleteFunc(slices.Clone(x), func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) })
}

// Widened is an interval about a center, made of so many builds at a confidence, as wide as it has to be for all of so many
// intervals to hold at that confidence (Bonferroni).
func Widened(low, center, high, confidence float64, builds, intervals int) (float64, float64) {
	if builds < 2 || intervals < 2 {
		return low, high
	}
	alpha, freedom := 1-confidence, float64(builds-1)
	factor := tQuantile(1-alpha/2/float64(intervals), freedom) / tQuantile(1-alpha/2, freedom)
	return center - factor*(center-low), center + factor*(high-center)
}

// Unpaired is the estimate of a delta between a cell and a baseline that were not measured in turn: log values of each, one for a build,
// of which none belongs to one of the other. The interval is Welch's (1947), as in Between. paired, from Compare, gives all else.
func Unpaired(paired Estimate, cell, baseline []float64, o Options) Estimate {
	o, _ = o.filled()
	e, x, y := paired, finite(cell), finite(baseline)
	e.Builds, e.Need, e.P = min(len(x), len(y)), o.MinBuilds, 1
	e.Low, e.High, e.HasInterval, e.Warnings = math.NaN(), math.NaN(), false, nil
	if e.Builds == 0 {
		return e
	}
	e.Center = Mean(x) - Mean(y)
	if e.Builds < max(2, o.MinBuilds) {
		return e
	}
	u, v := varianceOf(x)/float64(len(x)), varianceOf(y)/float64(len(y))
	if u+v == 0 {
		return paired // all agree to the last digit: the count of builds on one side is all there is
	}
	return e.spanned(squaredError{u, float64(len(x) - 1)}.plus(squaredError{v, float64(len(y) - 1)}), o)
}

// spanned is the estimate with the interval and p that the squared error of its center gives.
func (e Estimate) spanned(s squaredError, o Options) Estimate {
	e.scatter, e.freedom = math.Sqrt(s.value), s.freedom
	half := tQuantile(1-o.Level()/2, e.freedom) * e.scatter
	e.Low, e.High, e.HasInterval = e.Center-half, e.Center+half, true
	e.P = e.PAgainst(0)
	return e
}

// squaredError is the square of a standard error, and the degrees of freedom with which it is known.
type squaredError struct{ value, freedom float64 }

// plus is the squared error of a sum, with the degrees of freedom that Satterthwaite (1946) gives it.
func (s squaredError) plus(o squaredError) squaredError {
	sum := s.value + o.value
	if sum == 0 {
		return s
	}
	return squaredError{sum, sum * sum / (s.value*s.value/s.freedom + o.value*o.value/o.freedom)}
}

// Places are where a cell's bursts lie against its baseline's, on the log scale: the mean of all, the middle (the estimate's
// Center), and the typical one, which is the median.
type Places struct{ Mean, Center, Typical float64 }

// unevenLevel is how often any of the tests of a run may find unevenness in one that has none.
const unevenLevel = 0.01

// Uneven says of builds, whose deltas are judged together with so many others (tests), that the mean burst and the typical one differ by
// more than least. The difference of two bursts is symmetric about the truth whatever their noise is, as long as the cell and its
// baseline scatter alike: mean and median are then one. If they are not, the cell scatters otherwise, or other bursts were left out.
func Uneven(builds []Build, tests int, least float64) (Places, bool) {
	var p Places
	var gaps, room []float64
	for _, b := range builds {
		b = b.believable()
		pairs := b.pairs(&room)
		if len(pairs) == 0 {
			continue
		}
		mean, middle := Mean(pairs), trimmedMean(pairs, trim)
		typical := Median(pairs) // which are sorted by now
		gaps = append(gaps, mean-typical)
		p.Mean, p.Center, p.Typical = p.Mean+mean, p.Center+middle, p.Typical+typical
	}
	n := float64(len(gaps))
	p = Places{p.Mean / n, p.Center / n, p.Typical / n}
	return p, Systematic(gaps, tests, least)
}

// Systematic says that differences, one for each build, have a mean beyond +-least that chance does not explain, as one of so many
// tests.
func Systematic(differences []float64, tests int, least float64) bool {
	e := Estimate{Locations: differences}
	return math.Abs(Mean(differences)) > least && e.PAgainst(0)*float64(max(tests, 1)) < unevenLevel
}
