package stats

import "math"

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
// The little bias that is left is paid for by Options.Sequential. docs/statistics.md has the simulations.
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
	return tQuantile(1-o.ClaimLevel()/2/float64(max(family, 1)), freedom) / tQuantile(1-o.Level()/2, freedom)
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
	error1 := e.HalfWidth() / tQuantile(1-o.Level()/2, n-1) * math.Sqrt(n) // the scatter of one build
	for builds := e.Builds + 1; builds <= most; builds++ {
		freedom := float64(builds - 1)
		half := tQuantile(1-o.Level()/2, freedom) * error1 / math.Sqrt(float64(builds))
		if half <= inside || half*o.stretch(family, freedom) < beyond {
			return builds
		}
	}
	return 0
}
