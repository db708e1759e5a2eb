package insight

import (
	"slices"

	"netdelta/result"
	"netdelta/stats"
)

// NothingCompared is the verdict on two runs of which no delta could be compared.
const NothingCompared = "nothing"

// overall is the verdict on all changes together.
func overall(changes []result.Change) string {
	found, compared := map[string]bool{}, false
	for _, c := range changes {
		if c.Headline {
			found[c.Verdict] = true
			known, _ := moved(c)
			compared = compared || known
		}
	}
	if !compared {
		return NothingCompared
	}
	for _, v := range []stats.Verdict{stats.Regressed, stats.Unresolved, stats.Improved} {
		if found[string(v)] {
			return string(v)
		}
	}
	return string(stats.Same)
}

// moved reports whether a change has an interval, and on which side of no change the whole of it lies: -1 better, 1 worse, 0
// on both.
func moved(c result.Change) (known bool, side int) {
	low, high, none := c.ChangeLow, c.ChangeHigh, 1.0
	if c.Change == 0 {
		low, high, none = c.ShiftLow, c.ShiftHigh, 0
	}
	if low == nil || high == nil {
		return false, 0
	}
	switch {
	case *low > none:
		side = 1
	case *high < none:
		side = -1
	}
	if c.Better == string(stats.HigherBetter) {
		side = -side
	}
	return true, side
}

// ChangeAsDelta is a change as a delta against no change.
func ChangeAsDelta(c result.Change) result.Delta {
	return result.Delta{
		Network: c.Network, Path: c.Path, Unit: c.Unit, Judgement: result.Judgement{
			Ratio: c.Change, RatioLow: c.ChangeLow, RatioHigh: c.ChangeHigh, Difference: c.Shift, DifferenceLow: c.ShiftLow, DifferenceHigh: c.ShiftHigh,
			Blocks: min(c.Old.Blocks, c.New.Blocks), Need: c.Need, Verdict: c.Verdict,
		},
	}
}

// Judged are the changes that decide the outcome.
func Judged(c result.Comparison) []result.Change {
	return slices.DeleteFunc(slices.Clone(c.Changes), func(d result.Change) bool { return !d.Headline })
}

// ByVerdict are the judged changes of a comparison with this verdict.
func ByVerdict(c result.Comparison, verdict stats.Verdict) []result.Change {
	return slices.DeleteFunc(Judged(c), func(d result.Change) bool { return d.Verdict != string(verdict) })
}

// MarginOf is the margin that a change was compared with, as a share.
func MarginOf(c result.Comparison, change result.Change) float64 {
	if change.Change == 0 {
		return c.LossMargin
	}
	return c.Margin
}

// Group is the changes of one metric in one setting: what a table shows.
type Group struct {
	Changes  []result.Change
	Baseline *result.BaselineChange // nil where the metric is not judged
}

// Groups sorts the changes of a comparison into tables, in the order in which they come.
func Groups(c result.Comparison) []Group {
	type key struct {
		setting result.Setting
		metric  string
	}
	var all []Group
	for k, changes := range By(c.Changes, func(d result.Change) key { return key{d.Setting, d.Metric} }) {
		g := Group{Changes: changes}
		for i, b := range c.Baselines {
			if (key{b.Setting, b.Metric}) == k {
				g.Baseline = &c.Baselines[i]
			}
		}
		all = append(all, g)
	}
	return all
}
