package stats

import "math"

// Spread is how far the deltas of several runs on one machine differ beyond what the builds of each run explain. What makes them differ is the state
// of the machine, and whatever else stays the same from the first build of a run to its last.
type Spread struct {
	// Deviation is a standard deviation, on the scale of the estimate.
	Deviation float64
	// Freedom is how many degrees of freedom it is known with; at least 1.
	Freedom float64
}

// squared is the squared error that a run's center has by the spread between runs.
func (s Spread) squared() squaredError {
	return squaredError{s.Deviation * s.Deviation, max(s.Freedom, 1)}
}

// HalfWidth is half the width of the interval for repeating a run whose center has this standard error within the run, known with so many degrees
// of freedom. level is the chance of error.
func (s Spread) HalfWidth(within, freedom, level float64) float64 {
	sum := squaredError{within * within, freedom}.plus(s.squared())
	return tQuantile(1-level/2, sum.freedom) * math.Sqrt(sum.value)
}

// ForAnotherRun is the estimate with the interval and p for repeating the run: what runs differ by is added to what the builds differ by. The
// interval is Student's t. An estimate without an interval, and one whose builds do not vary at all, is returned as it is.
func (e Estimate) ForAnotherRun(s Spread, o Options) Estimate {
	o, _ = o.filled()
	within := e.withinRun()
	if !e.HasInterval || within.value == 0 || !(s.Deviation > 0) {
		return e
	}
	e.runs = s
	return e.spanned(within.plus(s.squared()), o)
}

// withinRun is the squared error of the center by the builds of the run.
func (e Estimate) withinRun() squaredError {
	if e.freedom > 0 {
		return squaredError{e.scatter * e.scatter, e.freedom}
	}
	means := finite(e.Locations)
	return squaredError{varianceOf(means) / float64(len(means)), float64(len(means) - 1)}
}

// ForOtherRuns is the change with the interval and p for repeating both runs: before and after are what runs like each of them differ by.
func (c Change) ForOtherRuns(before, after Spread, o Options) Change {
	o, _ = o.filled()
	if !c.HasInterval || c.scatter == 0 {
		return c
	}
	sum := squaredError{c.scatter * c.scatter, c.freedom}
	for _, s := range []Spread{before, after} {
		if s.Deviation > 0 {
			sum = sum.plus(s.squared())
		}
	}
	return c.spanned(sum, o)
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
