package hops

import (
	"math"

	"netdelta/result"
	"netdelta/stats"
)

// What hops may be off by before they are not shown, and nothing is concluded from them.
const (
	// GapMost is how far the hops of a network may add up to more or less than its round trip without tracing, as a share of it.
	GapMost = 0.06
	// levelMost is how many times as long as in the run a round trip may take without tracing, or in the run as without tracing: the run
	// visits networks in turn, a few transactions each, and what one of them finds in the caches is less.
	levelMost = 1.5
	// Two differences of the same networks may be apart by this share of the larger one, or of the base's round trip, and by their intervals.
	differenceMost = 0.25
	baseMost       = 0.03
)

// Doubt is why the hops of networks can't be trusted: a figure that should be the same was measured twice, and differs.
type Doubt struct {
	// Network is the one in doubt. Base is what it is held against where a difference is in doubt, "" where its round trip is.
	Network, Base string
	// Traced is by its hops where Run is false, else without tracing. Measured is without tracing where Run is false, else by the run. Both are
	// nanoseconds.
	Run              bool
	Traced, Measured float64
}

// FindDoubt holds the hops of networks against their round trips without tracing, and those against the run's figures where there are any;
// the first network is the base. found is false where all agree.
func FindDoubt(ways []Way) (d Doubt, found bool) {
	for _, w := range ways {
		if w.followed() && !(math.Abs(w.Gap()) <= GapMost) {
			return Doubt{Network: w.Network, Traced: w.Sum, Measured: w.Untraced}, true
		}
		if w.Run > 0 && !(w.Untraced <= levelMost*w.Run && w.Run <= levelMost*w.Untraced) {
			return Doubt{Network: w.Network, Run: true, Traced: w.Untraced, Measured: w.Run}, true
		}
	}
	for i := 1; i < len(ways); i++ {
		base, w := ways[0], ways[i]
		added, half := w.added(base)
		if byHops := Conclude(base, w).Total; base.followed() && w.followed() && differ(byHops, added, half, base.Untraced) {
			return Doubt{Network: w.Network, Base: base.Network, Traced: byHops, Measured: added}, true
		}
		if inRun := w.Run - base.Run; w.Run > 0 && base.Run > 0 && differ(added, inRun, half+w.RunError, base.Untraced) {
			return Doubt{Network: w.Network, Base: base.Network, Run: true, Traced: added, Measured: inRun}, true
		}
	}
	return Doubt{}, false
}

// InRun takes over what a run measured of the cell, among the run's deltas: the median round trip of its network, or of its baseline.
func (w *Way) InRun(cell result.Cell, deltas []result.Delta) {
	for _, d := range deltas {
		switch {
		case d.Metric != "p50" || d.Setting != cell.Setting() || d.Across != nil:
		case d.Cell == cell.ID:
			w.Run = d.Value
			if d.DifferenceLow != nil && d.DifferenceHigh != nil {
				w.RunError = (*d.DifferenceHigh - *d.DifferenceLow) / 2
			}
			return
		case cell.Role == result.RoleBaseline:
			w.Run = d.BaselineValue
			return
		}
	}
}

// followed says whether packets were followed by a tracer. The sockets' own stamps are of another exchange, and add up to that.
func (w Way) followed() bool { return !w.Stamped && w.Events > 0 }

// added is how much longer than the base's the round trip is without tracing, with half of its interval over builds: both are measured in
// each build.
func (w Way) added(base Way) (added, half float64) {
	var differences []float64
	for i := range min(len(w.UntracedBuilds), len(base.UntracedBuilds)) {
		differences = append(differences, w.UntracedBuilds[i]-base.UntracedBuilds[i])
	}
	_, low, high := stats.MeanInterval(differences, hopConfidence)
	if half = (high - low) / 2; !(half >= 0) || math.IsInf(half, 0) {
		half = 0
	}
	return w.Untraced - base.Untraced, min(half, baseMost*base.Untraced)
}

// differ says whether two differences of the same networks are further apart than they may be.
func differ(a, b, intervals, base float64) bool {
	return !(math.Abs(a-b) <= max(differenceMost*max(math.Abs(a), math.Abs(b)), baseMost*base)+intervals)
}
