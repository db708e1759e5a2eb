package stats

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// Spread is what the deltas of several runs on one machine scatter by beyond what the builds of each show: the machine's state, and whatever
// else a run keeps from its first build to its last.
type Spread struct {
	// Deviation is a standard deviation, on the scale of the estimate.
	Deviation float64
	// Freedom is how many degrees of freedom it is known with; at least 1.
	Freedom float64
}

// ForAnotherRun is the estimate with the interval and p for repeating the run: to what the builds differ by adds what runs differ by. The
// interval is Student's t, with the degrees of freedom that Satterthwaite (1946) gives a sum of two variances. An estimate without an interval,
// and one whose builds do not vary at all, is returned as it is.
func (e Estimate) ForAnotherRun(s Spread, o Options) Estimate {
	o, _ = o.filled()
	means := finite(e.Locations)
	within := e.errorSquared(means)
	if !e.HasInterval || within == 0 || !(s.Deviation > 0) {
		return e
	}
	e.runs = s
	e.scatter, e.freedom = widened(within, e.withinFreedom(means), s)
	half := tQuantile(1-o.Level()/2, e.freedom) * e.scatter
	e.Low, e.High = e.Center-half, e.Center+half
	e.P = e.PAgainst(0)
	return e
}

// errorSquared is the squared standard error of the center within the run.
func (e Estimate) errorSquared(means []float64) float64 {
	if e.freedom > 0 {
		return e.scatter * e.scatter
	}
	return varianceOf(means) / float64(len(means))
}

// withinFreedom is how many degrees of freedom errorSquared is known with.
func (e Estimate) withinFreedom(means []float64) float64 {
	if e.freedom > 0 {
		return e.freedom
	}
	return float64(len(means) - 1)
}

// widened is the standard error of a center whose squared error within the run is given, for repeating the run, and its degrees of freedom.
func widened(within, freedom float64, s Spread) (scatter, together float64) {
	between := s.Deviation * s.Deviation
	sum := within + between
	if sum == 0 {
		return 0, freedom
	}
	return math.Sqrt(sum), sum * sum / (within*within/freedom + between*between/max(s.Freedom, 1))
}

// ForOtherRuns is the change with the interval and p for repeating both runs, whose deltas scatter from run to run by before and after.
func (c Change) ForOtherRuns(before, after Spread, o Options) Change {
	o, _ = o.filled()
	if !c.HasInterval || c.scatter == 0 {
		return c
	}
	for _, s := range []Spread{before, after} {
		if s.Deviation > 0 {
			c.scatter, c.freedom = widened(c.scatter*c.scatter, c.freedom, s)
		}
	}
	half := tQuantile(1-o.Level()/2, c.freedom) * c.scatter
	c.Low, c.High, c.P = c.Center-half, c.Center+half, 1
	if beyond := (math.Abs(c.Center) - math.Log1p(o.Margin)) / c.scatter; beyond > 0 {
		c.P = 2 * distuv.StudentsT{Mu: 0, Sigma: 1, Nu: c.freedom}.Survival(beyond)
	}
	return c
}

// Repeats are the figures of one delta in several runs: the center that each run found, and its standard error within that run.
type Repeats struct {
	Centers, Errors []float64
	// Expected is the standard deviation that is expected between runs beyond these errors; it must be more than 0.
	Expected float64
}

// Excess is how many times as far runs scatter as was expected of them, as a ratio of variances: 1 is as expected, and 0 no more than the
// builds of each run explain. It is the method of moments over all deltas together, after DerSimonian and Laird (1986). runs is the largest
// number of runs of any delta; of fewer than 2 nothing is known, and Excess is 1.
func Excess(all []Repeats) (excess float64, runs int) {
	seen, expected := 0.0, 0.0
	for _, r := range all {
		n := len(r.Centers)
		if runs = max(runs, n); n < 2 || len(r.Errors) != n || !(r.Expected > 0) {
			continue
		}
		// In units of what is expected, so that large deltas don't outweigh the others.
		unit := r.Expected * r.Expected
		within := 0.0
		for _, e := range r.Errors {
			within += e * e
		}
		seen += (sampleVariance(r.Centers)*float64(n-1) - within*float64(n-1)/float64(n)) / unit
		expected += float64(n - 1)
	}
	if expected == 0 {
		return 1, runs
	}
	return max(seen/expected, 0), runs
}
