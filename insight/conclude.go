package insight

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"netdelta/result"
	"netdelta/stats"
)

// Conclusion is what a setting's table says, in a sentence.
type Conclusion struct {
	Setting result.Setting
	Says    string
}

// Conclude says for each setting of a run, in the order of its cells, what the headline deltas come to. It says no more
// than the intervals bear: networks whose intervals overlap are never ranked against each other. Of a setting in which nothing but the
// baseline was asked for it says "": such a run is about the effects of its factors.
func Conclude(run result.Run) []Conclusion {
	var all []Conclusion
	for _, part := range Parts(run) {
		if len(part.Run.Cells) == 0 {
			continue
		}
		if onlyBaseline(part.Run.Cells) {
			all = append(all, Conclusion{part.Setting, ""})
			continue
		}
		deltas := Headlines(part.Run.Deltas, part.Setting)
		says := Where(part.Setting.Placement) + ", "
		if len(deltas) == 0 {
			says += nothing(part.Run.Cells)
		} else {
			says += strings.Join(clauses(deltas, part.Run), "; ")
		}
		all = append(all, Conclusion{part.Setting, says + "."})
	}
	return all
}

// onlyBaseline says whether cells are those of a baseline and of its twin, and no others.
func onlyBaseline(cells []result.Cell) bool {
	is := func(role result.Role) func(result.Cell) bool {
		return func(c result.Cell) bool { return c.Role == role }
	}
	return slices.ContainsFunc(cells, is(result.RoleBaseline)) && !slices.ContainsFunc(cells, is(result.RoleCell))
}

// Headlines are the headline deltas of a setting, the cheapest network first.
func Headlines(deltas []result.Delta, setting result.Setting) []result.Delta {
	var own []result.Delta
	for _, d := range deltas {
		if d.Headline && d.Setting() == setting {
			own = append(own, d)
		}
	}
	slices.SortStableFunc(own, func(a, b result.Delta) int { return cmp.Compare(Cost(a), Cost(b)) })
	return own
}

// Cost orders the deltas of one metric: it is above 0 for what is worse than the baseline, and the larger the worse. It is
// the logarithm of the ratio, or the difference for metrics without one, with the sign turned where higher is better.
func Cost(d result.Delta) float64 { return worse(d, d.Ratio, d.Difference) }

// worse is a ratio, or where the delta has none a difference, on the scale of Cost.
func worse(d result.Delta, ratio, difference float64) float64 {
	x := difference
	if d.Ratio > 0 {
		x = math.Log(ratio)
	}
	if d.Better == string(stats.HigherBetter) {
		return -x
	}
	return x
}

// costRange is the interval of Cost; it is without bounds for a delta without an interval.
func costRange(d result.Delta) (low, high float64) {
	a, b := math.Inf(-1), math.Inf(1)
	switch {
	case d.RatioLow != nil && d.RatioHigh != nil:
		a, b = worse(d, *d.RatioLow, 0), worse(d, *d.RatioHigh, 0)
	case d.DifferenceLow != nil && d.DifferenceHigh != nil && d.Ratio == 0:
		a, b = worse(d, 0, *d.DifferenceLow), worse(d, 0, *d.DifferenceHigh)
	}
	return min(a, b), max(a, b)
}

// HasInterval says whether a delta rests on builds enough for an interval.
func HasInterval(d result.Delta) bool {
	low, high := costRange(d)
	return !math.IsInf(low, 0) && !math.IsInf(high, 0)
}

// Name is what a delta's network is called in a table: with its path where that is not the pod's own address.
func Name(network, path string) string {
	if path == "" || path == "pod" {
		return network
	}
	return network + " (" + path + ")"
}

// nothing says that a setting of these cells has no deltas.
func nothing(cells []result.Cell) string {
	baseline, measurable := "", false
	for _, c := range cells {
		if c.Role == result.RoleBaseline {
			baseline = c.Network
		}
		if c.Role == result.RoleCell && c.Unsupported == "" && c.Skipped == "" {
			measurable = true
		}
	}
	switch {
	case !measurable:
		return "no network was measured"
	case baseline == "":
		return "there was no baseline to compare with"
	}
	return "nothing could be compared with " + baseline + ": the trials failed, were disturbed or are still to come"
}

// clauses are the parts of a conclusion, of deltas in the order of cost. The ranking of what costs something comes last, so
// that the least and the most in it are of the networks not spoken of before.
func clauses(deltas []result.Delta, run result.Run) []string {
	by := map[string][]result.Delta{}
	for _, d := range deltas {
		verdict := d.Verdict
		if !HasInterval(d) {
			verdict = "too few"
		}
		by[verdict] = append(by[verdict], d)
	}
	var all []string
	add := func(clause string) {
		if clause != "" {
			all = append(all, clause)
		}
	}
	add(faster(by[string(stats.Faster)]))
	add(same(by[string(stats.Same)], run.Margin))
	all = append(all, unresolved(by[string(stats.Unresolved)], stats.Options{Confidence: run.Confidence, Sequential: run.Adaptive})...)
	add(tooFew(by["too few"], len(deltas)))
	return append(all, slower(by[string(stats.Slower)], len(all) > 0)...)
}

// names are the deltas' networks.
func names(deltas []result.Delta) []string {
	list := make([]string, len(deltas))
	for i, d := range deltas {
		list[i] = Name(d.Network, d.Path)
	}
	return list
}

// size is a delta in brackets: "(+1.2%, +0.41 µs)".
func size(d result.Delta) string {
	if d.Ratio == 0 {
		return "(" + Difference(Unit(d), d.Difference) + ")"
	}
	return "(" + Percent(d.Ratio) + ", " + Difference(Unit(d), d.Difference) + ")"
}

// span is the range of several deltas in brackets: "(+10% to +12%)".
func span(deltas []result.Delta) string {
	low, high := deltas[0], deltas[0]
	for _, d := range deltas {
		if Cost(d) < Cost(low) {
			low = d
		}
		if Cost(d) > Cost(high) {
			high = d
		}
	}
	from, to := Percent(low.Ratio), Percent(high.Ratio)
	if low.Ratio == 0 {
		from, to = Difference(Unit(low), low.Difference), Difference(Unit(high), high.Difference)
	}
	if from == to {
		return "(" + from + ")"
	}
	return "(" + from + " to " + to + ")"
}

func faster(deltas []result.Delta) string {
	if len(deltas) == 0 {
		return ""
	}
	return fmt.Sprintf("%s %s faster than %s", list(sized(deltas)), agree(len(deltas), "is", "are"), deltas[0].Baseline)
}

func same(deltas []result.Delta, margin float64) string {
	if len(deltas) == 0 {
		return ""
	}
	if deltas[0].Ratio == 0 {
		margin = LossMargin
	}
	return fmt.Sprintf("%s %s the same as %s to within %g%%",
		list(names(deltas)), agree(len(deltas), "is", "are"), deltas[0].Baseline, math.Round(margin*1e4)/100)
}

// unresolved speaks of deltas whose interval holds no change, of those whose test over the family is still to be passed, and of
// those that are no larger than what the null check leaves possible.
func unresolved(deltas []result.Delta, options stats.Options) []string {
	var open, early, small []result.Delta
	for _, d := range deltas {
		low, high := costRange(d)
		switch {
		case low <= 0 && high >= 0:
			open = append(open, d)
		case waits(d, options):
			early = append(early, d)
		default:
			small = append(small, d)
		}
	}
	var all []string
	if len(open) > 0 {
		clause := fmt.Sprintf("whether %s %s from %s can't be told at this budget",
			list(names(open)), agree(len(open), "differs", "differ"), open[0].Baseline)
		if d := open[0]; len(open) == 1 && d.Ratio > 0 {
			clause += fmt.Sprintf(" (%s to %s)", Percent(*d.RatioLow), Percent(*d.RatioHigh))
		}
		all = append(all, clause)
	}
	if len(early) > 0 {
		all = append(all, fmt.Sprintf("%s %s from %s in what was measured, but a few more builds have to show that it is not by chance",
			list(sized(early)), agree(len(early), "differs", "differ"), early[0].Baseline))
	}
	if len(small) > 0 {
		all = append(all, fmt.Sprintf("%s may differ from %s by noise alone", list(sized(small)), small[0].Baseline))
	}
	return all
}

// sized are the deltas' networks, each with its size.
func sized(deltas []result.Delta) []string {
	each := make([]string, len(deltas))
	for i, d := range deltas {
		each[i] = Name(d.Network, d.Path) + " " + size(d)
	}
	return each
}

// tooFew speaks of deltas without an interval, of so many in all.
func tooFew(deltas []result.Delta, of int) string {
	if len(deltas) == 0 {
		return ""
	}
	builds, need := 0, 0
	for _, d := range deltas {
		builds, need = max(builds, d.Blocks), max(need, d.Need)
	}
	about := ""
	if len(deltas) < of {
		about = " on " + list(names(deltas))
	}
	return fmt.Sprintf("there are too few builds for a verdict%s (%d of the %d that it takes)", about, builds, need)
}
