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

// columns gives each batch of a family of comparisons its column in the test over the family. Sittings that have no comparison
// in common share one: deltas of different builds are independent, and under the hypothesis that there is no difference each of them
// might have had the other sign, so that they may as well change signs together. Where each network is measured in builds of its own
// the family then takes no more of them than where all stand side by side.
func columns(family []contrast) map[int]int {
	var order []int
	members := map[int][]int{} // by batch
	for i, c := range family {
		for _, s := range c.batches {
			if members[s] == nil {
				order = append(order, s)
			}
			members[s] = append(members[s], i)
		}
	}
	slices.Sort(order)
	at := map[int]int{}
	column, taken := -1, map[int]bool{}
	for _, s := range order {
		if column < 0 || slices.ContainsFunc(members[s], func(i int) bool { return taken[i] }) {
			column, taken = column+1, map[int]bool{}
		}
		for _, i := range members[s] {
			taken[i] = true
		}
		at[s] = column
	}
	return at
}

// acrossBuilds holds one comparison against another with the same baseline that was never made in the same build: the difference of
// their deltas, one build of each after the other.
func acrossBuilds(a, b directComparison, o Options, s stats.Options) directComparison {
	var builds []stats.Build
	var batches []int
	for i := range min(len(a.batches), len(b.batches)) {
		if x := a.estimate.Locations[i] - b.estimate.Locations[i]; !math.IsNaN(x) {
			builds, batches = append(builds, stats.Build{Deltas: []float64{x}}), append(batches, a.batches[i])
		}
	}
	return directComparison{o.compare(builds, s), batches, true}
}
