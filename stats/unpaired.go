package stats

import "math"

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
	e.scatter = math.Sqrt(u + v)
	e.freedom = (u + v) * (u + v) / (u*u/float64(len(x)-1) + v*v/float64(len(y)-1))
	half := tQuantile(1-o.Level()/2, e.freedom) * e.scatter
	e.Low, e.High, e.HasInterval = e.Center-half, e.Center+half, true
	e.P = e.PAgainst(0)
	return e
}
