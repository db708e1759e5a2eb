package insight

import (
	"math"
	"slices"

	"netdelta/result"
	"netdelta/stats"
)

// contrasts hold the networks of each setting against one another in the setting's headline metric, each pair over the builds that
// both were measured in (cellSet.compareDirectly). The p values of all pairs of a setting are corrected as one family, by Holm, so that in at
// most one setting of twenty any two networks are called different that are not. That is held against stats.Options.Level, not
// ClaimLevel: no run stops on a contrast, so looking costs contrasts no more than it costs intervals. docs/statistics.md has the
// simulation. The noise floor of the setting holds for them as for deltas.
func (b *basis) contrasts() []result.Contrast {
	ranks := make([][]rank, len(b.sets))
	inParallel(len(b.sets), func(i int) {
		if t := &b.sets[i]; len(t.cells) > 0 && t.baseline != nil {
			b.remembering(b.headline(t), func(m metric) { ranks[i] = t.ranks(m, b.all, b.options) })
		}
	})
	var list []result.Contrast
	for i := range b.sets {
		t := &b.sets[i]
		for _, r := range ranks[i] {
			if r.Cheaper != "" && !(math.Abs(r.center) > b.floors.of(t, b.headline(t))) {
				r.Cheaper = ""
			}
			list = append(list, r.Contrast)
		}
	}
	return list
}

// rank is a contrast that does not yet know of the noise floor.
type rank struct {
	result.Contrast
	center float64 // on the scale of comparison
}

// ranks are the contrasts of one setting. Networks that were never measured have none.
func (t cellSet) ranks(m metric, all []batch, o Options) []rank {
	var list []rank
	var estimates []stats.Estimate
	var p []float64
	groups, cells := t.groups(all), t.cells
	if !t.planned { // any network of an imported run may be the baseline, and what differs must not hang on which is
		cells = append([]result.Cell{*t.baseline}, cells...)
	}
	for i, a := range cells {
		for _, b := range cells[i+1:] {
			d := t.compareDirectly(a, b, m, groups, all, o)
			if d.estimate.Builds == 0 {
				continue
			}
			list = append(list, rank{result.Contrast{Cell: a.ID, Other: b.ID, Blocks: d.estimate.Builds}, d.estimate.Center})
			estimates, p = append(estimates, d.estimate), append(p, d.estimate.P)
		}
	}
	for i, adjusted := range o.family(p) {
		c, e := &list[i].Contrast, estimates[i]
		fillContrast(c, m, e)
		if !e.HasInterval {
			continue
		}
		c.PAdjusted = finite(adjusted)
		if (e.Low > 0 || e.High < 0) && adjusted < o.stats(m).Level() {
			c.Cheaper = c.Cell
			if (e.Center > 0) == (m.better == string(stats.LowerBetter)) {
				c.Cheaper = c.Other
			}
		}
	}
	return list
}

// fillContrast writes an estimate into a contrast.
func fillContrast(c *result.Contrast, m metric, e stats.Estimate) {
	center, low, high := &c.Ratio, &c.RatioLow, &c.RatioHigh
	if m.linear {
		center, low, high = &c.Difference, &c.DifferenceLow, &c.DifferenceHigh
	}
	*center = m.amount(e.Center)
	if e.HasInterval {
		*low, *high = finite(m.amount(e.Low)), finite(m.amount(e.High))
	}
}

// compareDirectly compares two cells of a setting without anything in between: the baseline, where it is one of the two, stands with its
// A/A control. Where the two never stood in one build, their deltas are compared. The groups come from groups.
func (t cellSet) compareDirectly(a, b result.Cell, m metric, groups map[string]int, all []batch, o Options) directComparison {
	if a.Role == result.RoleBaseline {
		return t.compareDirectly(b, a, m, groups, all, o).reversed()
	}
	others := []string{b.ID}
	if b.Role == result.RoleBaseline && a.Role == result.RoleCell && t.control != nil {
		others = append(others, t.control.ID)
	}
	p := pairBuilds(m, a.ID, others, all)
	if len(p.builds) == 0 && b.Role == result.RoleCell && t.baseline != nil && groups[a.ID] != groups[b.ID] {
		return acrossBuilds(t.compareDirectly(a, *t.baseline, m, groups, all, o), t.compareDirectly(b, *t.baseline, m, groups, all, o), o, o.stats(m))
	}
	e := o.locate(p.builds, o.stats(m))
	if o.Unpaired {
		e = stats.Unpaired(e, figures(m, []string{a.ID}, all), figures(m, others, all), o.stats(m))
	}
	return directComparison{estimate: e, batches: p.batches}
}

// Ranking orders networks as far as they are known to differ.
type Ranking struct {
	// All are the networks, the cheapest first.
	All []result.Delta
	// Least are the networks with none known to cost less, Most the networks with none known to cost more. If no two networks
	// are known to differ, all are in Least.
	Least, Most []result.Delta
	// Ties are groups of two or more of the others of which no two are known to differ.
	Ties [][]result.Delta
}

// ranking ranks networks that are worse than the baseline.
func (p Part) ranking(deltas []result.Delta) Ranking {
	least, most, others := p.extremes(deltas)
	r := Ranking{All: deltas, Least: least, Most: most}
	if len(least) == len(deltas) {
		return r
	}
	for _, group := range p.Tiers(others) {
		if len(group) > 1 {
			r.Ties = append(r.Ties, group)
		}
	}
	return r
}

// cheaper says of which networks it is known that they cost less than others, a cell and then the other: by a direct contrast, or since
// the intervals of their deltas lie apart, each as wide as it takes for all of the setting to hold at once. Networks that are resolved after
// different builds have few in common, so that a contrast may know less than their deltas.
func (p Part) cheaper() map[[2]string]bool {
	known := map[[2]string]bool{}
	for _, c := range p.Contrasts {
		switch c.Cheaper {
		case "":
		case c.Cell:
			known[[2]string{c.Cell, c.Other}] = true
		default:
			known[[2]string{c.Other, c.Cell}] = true
		}
	}
	if p.Confidence == 0 || p.Exact != nil {
		return known
	}
	heads := p.Headlines()
	lows, highs := make([]float64, len(heads)), make([]float64, len(heads))
	for i, d := range heads {
		lows[i], highs[i] = p.atOnce(d, len(heads))
	}
	for i, a := range heads {
		for k, b := range heads {
			if highs[i] < lows[k] && Cost(b)-Cost(a) > floorOf(b) && !known[[2]string{b.Cell, a.Cell}] {
				known[[2]string{a.Cell, b.Cell}] = true
			}
		}
	}
	return known
}

// floorOf is the noise floor of a delta on the scale of Cost, 0 where none is known.
func floorOf(d result.Delta) float64 {
	switch {
	case d.Floor == nil:
		return 0
	case d.Ratio > 0:
		return math.Log1p(*d.Floor)
	}
	return *d.Floor
}

// atOnce is the interval of a delta's cost, as wide as it takes for so many of them to hold at once.
func (p Part) atOnce(d result.Delta, all int) (low, high float64) {
	low, high = costRange(WithinRun(d))
	return stats.Widened(low, Cost(d), high, p.Confidence, d.Blocks, all)
}

// extremes are the networks with none known to cost less, the networks with none known to cost more, and the
// others. A network so loosely known that it may be either is with the others. If no two are known to differ, all are
// in least.
func (p Part) extremes(deltas []result.Delta) (least, most, others []result.Delta) {
	known, told := p.cheaper(), false
	for _, d := range deltas {
		below := slices.ContainsFunc(deltas, func(o result.Delta) bool { return known[[2]string{o.Cell, d.Cell}] })
		above := slices.ContainsFunc(deltas, func(o result.Delta) bool { return known[[2]string{d.Cell, o.Cell}] })
		told = told || below || above
		switch {
		case above && !below:
			least = append(least, d)
		case below && !above:
			most = append(most, d)
		default:
			others = append(others, d)
		}
	}
	if !told {
		return deltas, nil, nil
	}
	return least, most, others
}

// Tiers sorts headline deltas of the part, the cheapest first, into groups of tied networks: no two of a group are known to differ.
func (p Part) Tiers(deltas []result.Delta) [][]result.Delta {
	known := p.cheaper()
	var groups [][]result.Delta
	for _, d := range deltas {
		last := len(groups) - 1
		if last >= 0 && !slices.ContainsFunc(groups[last], func(o result.Delta) bool {
			return known[[2]string{o.Cell, d.Cell}] || known[[2]string{d.Cell, o.Cell}]
		}) {
			groups[last] = append(groups[last], d)
			continue
		}
		groups = append(groups, []result.Delta{d})
	}
	return groups
}

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
