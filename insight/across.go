package insight

import (
	"slices"

	"netdelta/experiment/study"
	"netdelta/internal/gather"
	"netdelta/result"
	"netdelta/stats"
)

// acrossStates says whether networks are held against a baseline that has a state of the cluster of its own: each cell is then in one state
// alone, and what is paired are visits.
func acrossStates(cells []result.Cell) bool {
	return slices.ContainsFunc(cells, func(c result.Cell) bool { return c.Role == result.RoleBaseline && c.State != "" })
}

// blocks puts the k-th visits to all states together, of batches that are one visit each. States take turns, so these are the visits of one
// block.
func blocks(visits []batch) []batch {
	var all []batch
	seen := map[string]int{}
	for i, visit := range visits {
		for cell, s := range visit {
			k := seen[cell]
			seen[cell]++
			if k == len(all) {
				all = append(all, batch{})
			}
			s.visit, all[k][cell] = i, s
		}
	}
	return all
}

// batchesOf are the batches of a run: builds, or blocks of visits.
func batchesOf(cells []result.Cell, trials *Summaries) []batch {
	all := batches(trials)
	if acrossStates(cells) {
		all = blocks(all)
	}
	return all
}

// stand says which of some trials were measured in the same visit as another one; all of them where none was, for they are then
// compared across visits.
func (s *summary) stand(others []*summary) (beside []*summary, across bool) {
	elsewhere := func(o *summary) bool { return o.visit != s.visit }
	if !slices.ContainsFunc(others, elsewhere) {
		return others, false
	}
	if beside = slices.DeleteFunc(slices.Clone(others), elsewhere); len(beside) > 0 {
		return beside, false
	}
	return others, true
}

// Why a visit has no figure.
const (
	noReference = "no reference in the same visit"
	noBurst     = "no undisturbed burst"
)

// ofVisit is the reading of a trial as a whole. With a relative metric it is what the trial differs from the nodes' own network in the same
// visit, round by round.
func (m *metric) ofVisit(s *summary) reading {
	if m.relative {
		return m.againstReference(s)
	}
	values := m.values(s)
	if len(values) == 0 {
		return reading{reason: noBurst}
	}
	scaled, reason := m.scale(stats.Median(values))
	return reading{scaled: scaled, reason: reason}
}

// againstReference is what a trial differs from the nodes' own network in the same visit.
func (m *metric) againstReference(s *summary) reading {
	if s.reference == nil || s.reference.excluded() != "" {
		return reading{reason: noReference}
	}
	p := pairedBuilds{excluded: map[string]int{}}
	if m.ofBursts() {
		p.addRounds(0, *m, s, []*summary{s.reference})
	} else {
		p.addFigures(0, *m, (*metric).ofTrial, s, []*summary{s.reference})
	}
	if len(p.builds) == 0 {
		return reading{reason: noReference}
	}
	return reading{scaled: stats.Compare(p.builds, stats.Options{}).Center}
}

// findReferences tells each trial of a run across states which trial of the nodes' own network was measured in the same visit, and decides by the null checks
// in which metrics deltas are taken of what networks differ from it (double differences).
func (b *basis) findReferences() {
	if !b.across {
		return
	}
	pools := map[floorKey]*scatter{}
	for i := range b.sets {
		t := &b.sets[i]
		t.relative = map[string]bool{}
		if !b.refer(t) || t.baseline == nil || t.control == nil {
			continue
		}
		for _, m := range t.metrics(b.all, b.options) {
			key := floorKeyOf(t, m)
			if pools[key] == nil {
				pools[key] = &scatter{}
			}
			pools[key].add(b.nullSquares(t, m))
		}
	}
	for i := range b.sets {
		t := &b.sets[i]
		if t.baseline == nil {
			continue // the setting was left out so far
		}
		for _, m := range t.metrics(b.all, b.options) {
			pool := pools[floorKeyOf(t, m)]
			t.relative[m.name+m.unit] = pool != nil && pool.tighter() && b.referenceWhole(t, m) && !b.referenceMoved(t, m)
		}
	}
}

// refer finds the references of a setting's trials; false where it has none.
func (b *basis) refer(t *cellSet) bool {
	of := map[string]string{} // by state
	for _, c := range t.listed {
		if c.Network == study.HostNetwork && c.State != "" && c.Role != result.RoleBaseline && c.Role != result.RoleControl {
			of[c.State] = c.ID
		}
	}
	for _, block := range b.all {
		for _, c := range t.listed {
			if s, r := block[c.ID], block[of[c.State]]; s != nil && r != nil && s != r && s.visit == r.visit {
				s.reference = r
			}
		}
	}
	return len(of) > 0
}

// scatter sums up what null checks differ from nothing, as they are and relative to the nodes' own network.
type scatter struct{ plain, relative float64 }

func (s *scatter) add(plain, relative float64) {
	s.plain, s.relative = s.plain+plain, s.relative+relative
}

// tighter says whether double differences scatter less. The null checks have no part in what the baseline's two visits of a block have in
// common, which is what deltas are held against: to choose by them leaves an interval's coverage as it is (docs/adr/0052).
func (s *scatter) tighter() bool { return s.relative > 0 && s.relative < s.plain }

// nullSquares are the squares of a setting's null check, over the blocks that have it in both ways.
func (b *basis) nullSquares(t *cellSet, m metric) (plain, relative float64) {
	for _, block := range b.all {
		base, control := block.good(t.baseline.ID), block.good(t.control.ID)
		if base == nil || control == nil {
			continue
		}
		m.relative = false
		x, y := m.ofVisit(base), m.ofVisit(control)
		m.relative = true
		u, v := m.ofVisit(base), m.ofVisit(control)
		if x.reason+y.reason+u.reason+v.reason == "" {
			plain += (x.scaled - y.scaled) * (x.scaled - y.scaled)
			relative += (u.scaled - v.scaled) * (u.scaled - v.scaled)
		}
	}
	return plain, relative
}

// movedLevel is how often a reference that is the same in all states may be taken for one that is not.
const movedLevel = 0.05

// referenceWhole says whether each visit that counts has a figure relative to the nodes' own network as well: no block is given up for it.
func (b *basis) referenceWhole(t *cellSet, m metric) bool {
	for _, block := range b.all {
		for _, c := range t.listed {
			s := block.good(c.ID)
			if s == nil || c.Network == study.HostNetwork {
				continue
			}
			plain, relative := m, m
			plain.relative, relative.relative = false, true
			if plain.ofVisit(s).reason == "" && relative.ofVisit(s).reason != "" {
				return false
			}
		}
	}
	return true
}

// referenceMoved says whether the nodes' own network is another one in some state: a double difference would leave that out.
func (b *basis) referenceMoved(t *cellSet, m metric) bool {
	var all []result.Cell
	base := ""
	for _, c := range t.listed {
		if c.Role == result.RoleReference {
			all = append(all, c)
		} else if c.Network == study.HostNetwork && c.State == t.baseline.State {
			base = c.ID
		}
	}
	m.relative = false
	return slices.ContainsFunc(all, func(c result.Cell) bool {
		e := b.options.compare(pairBuilds(m, c.ID, []string{base}, b.all).builds, b.options.stats(m))
		return e.Builds > 1 && e.P*float64(len(all)) < movedLevel
	})
}

// stateOf is the state that a cell of the setting is measured in.
func (t cellSet) stateOf(id string) string {
	c, _ := gather.First(t.listed, func(c result.Cell) bool { return c.ID == id })
	return c.State
}

// across says how a delta was taken whose cell and baseline are in states of their own; nil for one within a visit.
func (t cellSet) across(cell result.Cell, m metric) *result.Across {
	if cell.State == "" || t.baseline.State == "" || cell.State == t.baseline.State {
		return nil
	}
	a := &result.Across{State: cell.State, Baseline: t.baseline.State}
	if m.relative {
		a.Reference = study.HostNetwork
	}
	return a
}
