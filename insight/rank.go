package insight

import (
	"fmt"
	"math"

	"netdelta/result"
	"netdelta/stats"
)

// slower ranks the networks that are worse than the baseline, as far as their intervals tell them apart. rest says that
// other networks were spoken of before.
func slower(deltas []result.Delta, rest bool) []string {
	switch len(deltas) {
	case 0:
		return nil
	case 1:
		return []string{one(deltas[0])}
	}
	least, most, others := extremes(deltas)
	if len(least) == len(deltas) {
		verb := "cost more than"
		if higherBetter(deltas[0]) {
			verb = "lose against"
		}
		return []string{fmt.Sprintf("%s %s %s %s, but can't be told apart at this budget",
			list(names(deltas)), verb, deltas[0].Baseline, span(deltas))}
	}
	verb := func(n int) string {
		if higherBetter(deltas[0]) {
			return agree(n, "loses", "lose")
		}
		return agree(n, "costs", "cost")
	}
	lead := ""
	if rest {
		lead = "of the others, "
	}
	ranking := fmt.Sprintf("%s%s %s the least %s and %s the most %s",
		lead, list(names(least)), verb(len(least)), sizes(least), list(names(most)), sizes(most))
	var alike []string
	for _, group := range append([][]result.Delta{least, most}, cliques(others)...) {
		if len(group) > 1 {
			alike = append(alike, list(names(group)))
		}
	}
	all := []string{ranking}
	if len(alike) > 0 {
		clause := alike[0] + " can't be told apart at this budget"
		for _, group := range alike[1:] {
			clause += ", nor can " + group
		}
		all = append(all, clause)
	}
	return all
}

// one speaks of a single network that is worse than the baseline.
func one(d result.Delta) string {
	name := Name(d.Network, d.Path)
	switch {
	case d.Ratio == 0:
		return fmt.Sprintf("%s is worse than %s by %s", name, d.Baseline, Difference(Unit(d), d.Difference)[1:])
	case higherBetter(d):
		return fmt.Sprintf("%s loses %s against %s (%s)", name, Percent(d.Ratio)[1:], d.Baseline, Difference(Unit(d), d.Difference))
	}
	return fmt.Sprintf("%s costs %s more than %s (%s)", name, Percent(d.Ratio)[1:], d.Baseline, Difference(Unit(d), d.Difference))
}

func higherBetter(d result.Delta) bool { return d.Better == string(stats.HigherBetter) }

// sizes is the size of one delta or the span of several.
func sizes(deltas []result.Delta) string {
	if len(deltas) == 1 {
		return size(deltas[0])
	}
	return span(deltas)
}

// extremes are the networks of which none is known to cost less, those of which none is known to cost more, and the
// others. A network so loosely known that it may be either is with the others. If none can be told from any other, all are
// in least.
func extremes(deltas []result.Delta) (least, most, others []result.Delta) {
	leastHigh, mostLow := math.Inf(1), math.Inf(-1)
	for _, d := range deltas {
		low, high := costRange(d)
		leastHigh, mostLow = min(leastHigh, high), max(mostLow, low)
	}
	if leastHigh >= mostLow {
		return deltas, nil, nil
	}
	for _, d := range deltas {
		low, high := costRange(d)
		switch {
		case low <= leastHigh && high >= mostLow:
			others = append(others, d)
		case low <= leastHigh:
			least = append(least, d)
		case high >= mostLow:
			most = append(most, d)
		default:
			others = append(others, d)
		}
	}
	return least, most, others
}

// cliques sorts deltas in the order of cost into groups of which any two overlap.
func cliques(deltas []result.Delta) [][]result.Delta {
	var groups [][]result.Delta
	for _, d := range deltas {
		last := len(groups) - 1
		if last >= 0 && overlapsAll(d, groups[last]) {
			groups[last] = append(groups[last], d)
			continue
		}
		groups = append(groups, []result.Delta{d})
	}
	return groups
}

func overlapsAll(d result.Delta, group []result.Delta) bool {
	low, high := costRange(d)
	for _, o := range group {
		if oLow, oHigh := costRange(o); oLow > high || oHigh < low {
			return false
		}
	}
	return true
}
