package insight

import (
	"math"

	"netdelta/result"
)

// Ranking orders networks as far as their intervals tell them apart.
type Ranking struct {
	// All are the networks, the cheapest first.
	All []result.Delta
	// Least are those of which none is known to cost less, Most those of which none is known to cost more. If no network can
	// be told from any other, all are in Least.
	Least, Most []result.Delta
	// Ties are groups of two or more whose intervals overlap: Least, Most, then the others. It is empty if all are in Least.
	Ties [][]result.Delta
}

// rankingOf ranks networks that are worse than the baseline.
func rankingOf(deltas []result.Delta) Ranking {
	least, most, others := extremes(deltas)
	r := Ranking{All: deltas, Least: least, Most: most}
	if len(least) == len(deltas) {
		return r
	}
	for _, group := range append([][]result.Delta{least, most}, cliques(others)...) {
		if len(group) > 1 {
			r.Ties = append(r.Ties, group)
		}
	}
	return r
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
