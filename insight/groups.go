package insight

import (
	"math"
	"slices"

	"netdelta/result"
	"netdelta/stats"
)

// groups numbers the groups of the table's cells that were ever measured together: networks that change
// what they are measured on have builds of their own. It is nil where all are in one group.
func (t cellSet) groups(all []batch) map[string]int {
	group := map[string]int{}
	for i, c := range t.cells {
		group[c.ID] = i
	}
	join := func(from, to int) {
		for id, g := range group {
			if g == from {
				group[id] = to
			}
		}
	}
	sat := map[string]bool{}
	for _, s := range all {
		first := -1
		for _, c := range t.cells {
			if s[c.ID] == nil {
				continue
			}
			sat[c.ID] = true
			switch g := group[c.ID]; {
			case g == first:
			case first < 0:
				first = g
			default:
				join(g, first)
			}
		}
	}
	measured := map[int]bool{}
	for id := range sat {
		measured[group[id]] = true
	}
	if len(measured) < 2 {
		return nil
	}
	return group
}

// of are the batches in which a cell of the same group sat.
func (t cellSet) of(cell string, groups map[string]int, all []batch) []batch {
	if groups == nil {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(s batch) bool {
		return !slices.ContainsFunc(t.cells, func(c result.Cell) bool { return s[c.ID] != nil && groups[c.ID] == groups[cell] })
	})
}

// acrossBuilds holds one comparison against another with the same baseline that was never made in the same build: the difference of
// their deltas, whose builds are two independent samples.
func acrossBuilds(a, b directComparison, o Options, s stats.Options) directComparison {
	var builds []stats.Build
	var batches []int
	for i := range min(len(a.batches), len(b.batches)) {
		if x := a.estimate.Locations[i] - b.estimate.Locations[i]; !math.IsNaN(x) {
			builds, batches = append(builds, stats.Build{Deltas: []float64{x}}), append(batches, a.batches[i])
		}
	}
	e := o.compare(builds, s)
	if !o.Exact {
		e = stats.Unpaired(e, a.estimate.Locations, b.estimate.Locations, s)
	}
	return directComparison{e, batches, true}
}
