package insight

import (
	"math"
	"slices"

	"netdelta/experiment/study"
	"netdelta/result"
)

// Extent is how much of what a claim speaks of was put to the test: so many of so many.
type Extent struct{ Networks, Placements, Settings Share }

// Share is so many of so many.
type Share struct{ Tested, Of int }

func (s Share) whole() bool { return s.Tested >= s.Of }

// Whole says whether all was.
func (e Extent) Whole() bool { return e.Networks.whole() && e.Placements.whole() && e.Settings.whole() }

// extent holds what clauses speak of against the answers that could have failed.
func (j *claimJudge) extent(clauses []study.Clause, answers []answer, correlated []ClaimPart) Extent {
	networks, placements, settings := map[string]bool{}, map[result.Placement]bool{}, map[result.Setting]bool{}
	for i := range clauses {
		c := &clauses[i]
		for _, name := range slices.Concat(c.Networks, c.Against) {
			if name != study.Others {
				networks[name] = false
			}
		}
		for _, cell := range j.cells {
			if !j.speaksOf(c, cell) || !j.speaksOfRate(c, cell) {
				continue
			}
			placements[cell.Placement], settings[cell.Setting()] = false, false
			if others := slices.Contains(slices.Concat(c.Networks, c.Against), study.Others); others && cell.Role == result.RoleCell {
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
	for _, r := range j.correlations {
		s := r.Setting
		if _, spoken := settings[s]; spoken && slices.ContainsFunc(correlated, func(p ClaimPart) bool {
			return p.Clause.With == study.Raw{Metric: r.RawMetric, Workload: r.RawWorkload}
		}) {
			placements[s.Placement], settings[s] = true, true
		}
	}
	for _, a := range answers {
		if a.verdict == NoTest {
			continue
		}
		for _, cell := range []result.Cell{a.a, a.b} {
			networks[cell.Network], placements[cell.Placement], settings[cell.Setting()] = true, true, true
		}
	}
	return Extent{shareOf(networks), shareOf(placements), shareOf(settings)}
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

// inPart is the verdict on a claim of which every comparison that could have failed was confirmed.
func inPart(verdict string, e Extent) string {
	if verdict == Confirmed && !e.Whole() {
		return ConfirmedInPart
	}
	return verdict
}

// certain says whether a comparison could not have failed: the time that the clause allows is more than either network takes in all.
func (a *answer) certain(values ...float64) bool {
	if !a.clause.InTime() || a.changes() || len(values) == 0 {
		return false
	}
	const second = 1e9
	most := slices.Max(values) / second
	return most > 0 && (math.IsInf(a.low, 0) || -a.low > most) && (math.IsInf(a.high, 0) || a.high > most)
}
