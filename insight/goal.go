package insight

import (
	"math"
	"slices"

	"netdelta/experiment/study"
	"netdelta/result"
	"netdelta/stats"
)

// GoalAnswer is what a run says of a goal.
type GoalAnswer struct {
	Goal    study.Goal
	Verdict string // result.GoalPass and its like
	// Delta is the one that decides: where the goal is missed by most, else where it holds the least surely. Settings is how many were looked at, Early that some have no interval.
	Delta           result.Delta
	Settings, Early int
	// Low and High are what the change may be in the deciding setting, as a ratio or where the goal is in time as a difference, widened
	// for the number of settings.
	Low, High float64
	Unread    error
}

// Goals judges a run's goals by its deltas. A goal passes where in every setting the whole interval is on its side, fails where in one
// it is wholly on the other, and is unknown else. The intervals are widened for the number of settings, so that a goal that just holds
// in all of them fails by chance no more often than a single interval misses.
func Goals(run result.Run) []GoalAnswer {
	var all []GoalAnswer
	for _, g := range run.Goals {
		goal, err := study.ParseGoal(g.Goal)
		a := GoalAnswer{Goal: goal, Verdict: result.GoalUnknown, Unread: err}
		if err == nil {
			a.judge(run)
		}
		all = append(all, a)
	}
	return all
}

// judge looks at every delta that the goal is about.
func (a *GoalAnswer) judge(run result.Run) {
	deltas := slices.DeleteFunc(slices.Clone(run.Deltas), func(d result.Delta) bool { return !a.isAbout(d) })
	a.Settings = len(deltas)
	worst, passed := math.Inf(1), 0
	farthest := 0.0 // of those that fail
	for _, d := range deltas {
		low, high, known := a.interval(d, run.Confidence)
		if !known {
			a.Early++
			continue
		}
		surely, hardly := a.holds(low, high)
		switch {
		case hardly < 0 || hardly == 0 && !a.Goal.OrEqual:
			if a.Verdict != result.GoalFail || hardly < farthest {
				farthest, a.Delta, a.Low, a.High = hardly, d, low, high
			}
			a.Verdict = result.GoalFail
			continue
		case a.holdsAt(surely):
			passed++
		}
		if surely < worst && a.Verdict != result.GoalFail {
			worst, a.Delta, a.Low, a.High = surely, d, low, high
		}
	}
	if a.Verdict != result.GoalFail && passed == len(deltas) && passed > 0 {
		a.Verdict = result.GoalPass
	}
}

// undecided are the cells of a run under way on which a goal hangs that can't be told yet.
func (j Judge) undecided(run result.Run, trials []result.Trial) map[string]bool {
	if len(run.Goals) == 0 {
		return nil
	}
	o := j.options(run)
	b := newBasis(run.Cells, Summarize(result.List(trials)), o)
	run.Deltas = judged(b.compareAll().networks, b.options)
	open := map[string]bool{}
	for _, a := range Goals(run) {
		for _, d := range run.Deltas {
			if a.Verdict != result.GoalUnknown || !a.isAbout(d) {
				continue
			}
			low, high, known := a.interval(d, run.Confidence)
			if surely, _ := a.holds(low, high); !known || !a.holdsAt(surely) {
				open[d.Cell] = true
			}
		}
	}
	return open
}

// holdsAt says whether the goal holds so far from its limit.
func (a *GoalAnswer) holdsAt(distance float64) bool {
	return distance > 0 || distance == 0 && a.Goal.OrEqual
}

// isAbout says whether the goal speaks of a delta.
func (a *GoalAnswer) isAbout(d result.Delta) bool {
	names := []string{"*", d.Network, Name(d.Network, d.Path)}
	return d.Metric == a.Goal.Metric && slices.Contains(names, a.Goal.Network)
}

// holds is how far the goal holds at the end of an interval that is worst for it, and at the end that is best.
func (a *GoalAnswer) holds(low, high float64) (surely, hardly float64) {
	if a.Goal.Below {
		return a.Goal.Limit - high, a.Goal.Limit - low
	}
	return low - a.Goal.Limit, high - a.Goal.Limit
}

// interval is what the change of a delta may be: a share, or a time.
func (a *GoalAnswer) interval(d result.Delta, confidence float64) (low, high float64, known bool) {
	if confidence <= 0 || confidence >= 1 {
		confidence = study.DefaultConfidence
	}
	if a.Goal.InTime || d.Ratio == 0 {
		if d.DifferenceLow == nil || d.DifferenceHigh == nil {
			return 0, 0, false
		}
		low, high = stats.Widened(*d.DifferenceLow, d.Difference, *d.DifferenceHigh, confidence, d.Blocks, a.Settings)
		return low, high, true
	}
	if d.RatioLow == nil || d.RatioHigh == nil || *d.RatioLow <= 0 {
		return 0, 0, false
	}
	low, high = stats.Widened(math.Log(*d.RatioLow), math.Log(d.Ratio), math.Log(*d.RatioHigh), confidence, d.Blocks, a.Settings)
	return math.Expm1(low), math.Expm1(high), true
}
