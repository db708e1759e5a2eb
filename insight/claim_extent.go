package insight

import (
	"slices"

	"netdelta/experiment/study"
	"netdelta/internal/gather"
	"netdelta/result"
)

// Extent is how much of what a claim speaks of was put to the test: so many of so many.
type Extent struct{ Networks, Placements, Settings Share }

// Share is so many of so many.
type Share struct{ Tested, Of int }

func (s Share) whole() bool { return s.Tested >= s.Of }

// Whole says whether all was.
func (e Extent) Whole() bool { return e.Networks.whole() && e.Placements.whole() && e.Settings.whole() }

// answered is a network that a clause has an answer of, which could have failed, in a setting.
type answered struct {
	clause  *study.Clause
	setting result.Setting
	network string
}

// subjects are the networks and placements that clauses speak of, none of them tested yet.
func (j *claimJudge) subjects(clauses []study.Clause) (networks map[string]bool, placements map[result.Placement]bool) {
	networks, placements = map[string]bool{}, map[result.Placement]bool{}
	for i := range clauses {
		c := &clauses[i]
		for _, name := range slices.Concat(c.Networks, c.Against) {
			if name != study.Others {
				networks[name] = false
			}
		}
		for _, cell := range j.spoken(c) {
			placements[cell.Placement] = false
			if cell.Role == result.RoleCell && about(c, cell) {
				networks[cell.Network] = false
			}
		}
		for _, w := range append(slices.Clone(c.Where), c.From, c.To) {
			if w.Key == "placement" {
				for _, value := range w.Values {
					placements[result.Placement(value)] = false
				}
			}
		}
	}
	return networks, placements
}

// extent holds what clauses speak of against the answers that could have failed. The run lacks so many levels of each clause.
func (j *claimJudge) extent(clauses []study.Clause, lacking []int, answers []answer, correlated []ClaimPart) Extent {
	networks, placements := j.subjects(clauses)
	settings := map[result.Setting]bool{}
	had := map[answered]bool{}
	for _, a := range answers {
		if a.verdict == NoTest {
			continue
		}
		for _, cell := range []result.Cell{a.a, a.b} {
			networks[cell.Network], placements[cell.Placement] = true, true
			had[answered{a.clause, cell.Setting(), cell.Network}] = true
		}
	}
	nowhere := 0
	for i := range clauses {
		if lacks(&clauses[i], networks) {
			continue // the networks are counted by themselves
		}
		own := j.tested(&clauses[i], had, networks, correlated)
		for s, whole := range own {
			before, seen := settings[s]
			settings[s] = whole && (before || !seen)
			placements[s.Placement] = placements[s.Placement] || whole
		}
		if len(own) == 0 {
			nowhere++
		}
		nowhere += lacking[i]
	}
	e := Extent{shareOf(networks), shareOf(placements), shareOf(settings)}
	e.Settings.Of += nowhere
	return e
}

// lacks says whether nothing is left of a clause without the networks that were put to the test nowhere.
func lacks(c *study.Clause, networks map[string]bool) bool {
	var gone []Missing
	for _, name := range slices.Concat(c.Networks, c.Against) {
		if name != study.Others && !networks[name] {
			gone = append(gone, Missing{What: name})
		}
	}
	return len(decisive(c, gone)) > 0
}

// tested says of each setting that a clause speaks of whether it was put to the test there as a whole: with all networks that it was put to
// the test with anywhere.
func (j *claimJudge) tested(c *study.Clause, had map[answered]bool, networks map[string]bool, correlated []ClaimPart) map[result.Setting]bool {
	own := map[result.Setting]bool{}
	cells := j.spoken(c)
	for _, cell := range cells {
		s := cell.Setting()
		own[s] = own[s] || had[answered{c, s, cell.Network}] || c.OfCorrelation() && slices.ContainsFunc(correlated, func(p ClaimPart) bool {
			return p.Clause == c && slices.ContainsFunc(j.correlations, func(r result.Correlation) bool { return r.Setting == s && correlates(r, c) })
		})
	}
	for _, cell := range cells {
		if s := cell.Setting(); !c.OfCorrelation() && about(c, cell) && networks[cell.Network] && !had[answered{c, s, cell.Network}] {
			own[s] = false
		}
	}
	return own
}

// absentLevels are the levels of a clause's conditions that no cell of the run has, though it has other ones of them. Placements are counted by
// themselves.
func (j *claimJudge) absentLevels(c *study.Clause) []study.Condition {
	var absent []study.Condition
	for i, w := range c.Where {
		if w.Key == "placement" {
			continue
		}
		lacks := gather.Where(w.Values, func(value string) bool {
			one := *c
			one.Where = slices.Clone(c.Where)
			one.Where[i].Values = []string{value}
			return len(j.spoken(&one)) == 0
		})
		if len(lacks) > 0 && len(lacks) < len(w.Values) {
			absent = append(absent, study.Condition{Key: w.Key, Values: lacks})
		}
	}
	return absent
}

// about says whether a clause names a cell's network, or means it by others.
func about(c *study.Clause, cell result.Cell) bool {
	named := slices.Concat(c.Networks, c.Against)
	return slices.Contains(named, cell.Network) || cell.Role == result.RoleCell && slices.Contains(named, study.Others)
}

// spoken are the cells of the settings that a clause is about, measured or not.
func (j *claimJudge) spoken(c *study.Clause) []result.Cell {
	return gather.Where(j.cells, func(cell result.Cell) bool { return j.speaksOf(c, cell) && j.speaksOfRate(c, cell) })
}

// speaksOf says whether a clause is about the setting of a cell, measured or not.
func (j *claimJudge) speaksOf(c *study.Clause, cell result.Cell) bool {
	if !c.BetweenLevels() {
		return j.matches(cell, c.Where, false)
	}
	own := *j
	own.factor = c.From.Key
	return own.matches(cell, append(slices.Clone(c.Where), c.From), false) || own.matches(cell, append(slices.Clone(c.Where), c.To), false)
}

func shareOf[K comparable](seen map[K]bool) Share {
	s := Share{Of: len(seen)}
	for _, tested := range seen {
		if tested {
			s.Tested++
		}
	}
	return s
}

// speaksOfRate says whether a clause is about a rate that a cell's workload has; others have nothing to correlate.
func (j *claimJudge) speaksOfRate(c *study.Clause, cell result.Cell) bool {
	return !c.OfCorrelation() || slices.ContainsFunc(j.cells, func(o result.Cell) bool {
		_, measured := j.deltas[measure{o.ID, c.Metric}]
		return measured && o.Workload == cell.Workload
	})
}
