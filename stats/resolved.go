package stats

import "math"

// Resolved says whether a runner that adds build after build, and looks after each, may stop measuring this delta, one
// of a family that is judged together. Use it with Options.Sequential, and correct by StepDown.
//
// Stopping as soon as the verdict is not Unresolved would stop on luck: a delta at the margin is looked at until it
// once seems inside, and the 95% interval then holds the truth in 90% of runs. So precision comes first: nothing
// stops before the half width is at most half the margin (for a delta above 5 margins, a tenth of the delta). What
// width an interval has tells little of where it lies, so stopping on it is nearly harmless. Beyond that, one of:
//
//   - the interval lies within the margin: Same;
//   - no change is excluded at the level of the whole family (Bonferroni), so that no later build will undo the claim;
//   - the half width is at most a quarter of the margin: what is still open then is as good as at the margin;
//
// the latter two only with builds enough for StepDown to make a claim at all (7 when Sequential at 95%).
//
// The little bias that is left is paid for by Options.Sequential. docs/statistics.md has the simulations.
func Resolved(e Estimate, family int, o Options) bool {
	o, _ = o.filled()
	if !e.valid() {
		return false
	}
	margin, half := math.Log1p(o.Margin), e.HalfWidth()
	if half > max(margin/2, math.Abs(e.Center)/10) {
		return false
	}
	if e.within(margin) {
		return true
	}
	if e.Builds < NeedFor(1, 1-o.ClaimLevel()) {
		return false
	}
	if half <= margin/4 {
		return true
	}
	freedom := float64(e.Builds - 1)
	stretch := tQuantile(1-o.ClaimLevel()/2/float64(max(family, 1)), freedom) / tQuantile(1-o.Level()/2, freedom)
	return math.Abs(e.Center) > half*stretch
}
