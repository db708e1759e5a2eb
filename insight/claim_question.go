package insight

import (
	"slices"

	"netdelta/experiment/study"
	"netdelta/internal/gather"
	"netdelta/result"
)

// question is one comparison that a clause asks for: of a against b in the setting of table; for a change between levels, of
// the deltas of a in that setting and of b, which is the same network, in the setting of other; for an effect, of a in that
// setting against b, which is the same network, in the setting of other.
type question struct {
	clause         *study.Clause
	metric         metric
	cellSet, other *cellSet
	a, b           result.Cell
}

// changes says whether the question is about two deltas and not about two cells.
func (q question) changes() bool { return q.clause.Relation == study.Changes }

// silent names the network that leaves a question without an answer.
func (j *claimJudge) silent(q question) string {
	if slices.ContainsFunc(j.all, func(s batch) bool { return s.good(q.a.ID) != nil }) {
		return q.b.Network
	}
	return q.a.Network
}

// Why something has no answer: a network that was to be measured, and what is no part of the run.
const (
	noTrial  = "no trial of it counts"
	notInRun = "not in this run"
)

// open leaves out of what is missing in some setting the networks that have answers in others.
func open(missing []Missing, answers []answer) []Missing {
	return slices.DeleteFunc(missing, func(l Missing) bool {
		return l.Why == noTrial && slices.ContainsFunc(answers, func(a answer) bool { return a.a.Network == l.What || a.b.Network == l.What })
	})
}

// questions are the comparisons that a clause asks for, at most one more than most, and what it speaks of in vain.
func (j *claimJudge) questions(c *study.Clause, most int) (asked []question, absent []Missing) {
	if c.BetweenLevels() {
		return j.changes(c, most)
	}
	covered := j.covered(c.Where)
	if len(covered) == 0 {
		return nil, []Missing{j.noSetting(c.Where)}
	}
	absent = j.absentNetworks(c, covered)
	if why := decisive(c, absent); why != nil {
		return nil, why
	}
	measured := false
	for _, t := range covered {
		m, ok := j.metric(t, c)
		if !ok {
			continue
		}
		measured = true
		subjects, against := j.members(t, c, c.Networks), j.members(t, c, c.Against)
		for i, a := range subjects {
			if c.Relation == study.EachOther {
				against = subjects[i+1:]
			}
			for _, b := range against {
				if !samePath(a, b) {
					continue
				}
				if asked = append(asked, question{c, m, t, nil, a, b}); len(asked) > most {
					return asked, absent
				}
			}
		}
	}
	if !measured {
		return nil, []Missing{{c.Metric, "not measured"}}
	}
	if len(asked) == 0 && len(absent) == 0 {
		absent = []Missing{{"networks to compare", notInRun}}
	}
	return asked, absent
}

// samePath says whether clients reach the servers of two cells in the same way; the baseline has only one.
func samePath(a, b result.Cell) bool {
	return a.Path == b.Path || a.Role == result.RoleBaseline || b.Role == result.RoleBaseline
}

// changes are the questions of a clause about two levels.
func (j *claimJudge) changes(c *study.Clause, most int) (asked []question, absent []Missing) {
	own := *j
	j, own.factor = &own, c.From.Key
	from, to := append(slices.Clone(c.Where), c.From), append(slices.Clone(c.Where), c.To)
	before, after := j.covered(from), j.covered(to)
	for _, side := range []struct {
		cellSets []*cellSet
		where    []study.Condition
	}{{before, from}, {after, to}} {
		if len(side.cellSets) == 0 {
			absent = append(absent, j.noSetting(side.where))
		}
	}
	if len(absent) > 0 {
		return nil, absent
	}
	absent = j.absentNetworks(c, append(slices.Clone(before), after...))
	if why := decisive(c, absent); why != nil {
		return nil, why
	}
	for _, t := range before {
		m, ok := j.metric(t, c)
		if !ok {
			continue
		}
		for _, other := range after {
			if !differOnly(t.setting, other.setting, c.From.Key) {
				continue
			}
			asked = append(asked, j.between(c, m, t, other)...)
			if len(asked) > most {
				return asked, absent
			}
		}
	}
	if len(asked) == 0 && len(absent) == 0 {
		absent = []Missing{{c.Metric, "not measured at both levels"}}
	}
	return asked, absent
}

// between are the questions about the networks of two settings that differ in a clause's factor: of their deltas, or of
// themselves.
func (j *claimJudge) between(c *study.Clause, m metric, from, to *cellSet) []question {
	var asked []question
	for _, a := range j.members(from, c, c.Networks) {
		if a.Role == result.RoleBaseline {
			if c.OfEffect() {
				asked = append(asked, question{c, m, to, from, *to.baseline, a})
			}
			continue
		}
		i := slices.IndexFunc(to.cells, func(b result.Cell) bool { return b.Network == a.Network && b.Path == a.Path })
		switch {
		case i < 0:
		case c.OfEffect():
			asked = append(asked, question{c, m, to, from, to.cells[i], a})
		default:
			asked = append(asked, question{c, m, from, to, a, to.cells[i]})
		}
	}
	return asked
}

// differOnly says whether two settings are the same but for a parameter, named as in a study, and for what means nothing
// without it: the number of a policy's rules does not keep a setting with a policy from being held against one without.
func differOnly(a, b result.Setting, key string) bool {
	return withoutFactor(a, b, key) == withoutFactor(b, a, key)
}

// withoutFactor is the setting with one of its factors left open, for a comparison with another.
func withoutFactor(s, other result.Setting, key string) result.Setting {
	switch key {
	case "placement":
		s.Placement = ""
	case "workload":
		s.Workload = ""
	default:
		s.Params = study.Without(s.Params, other.Params, key)
	}
	return s
}

// matches says whether conditions hold in a cell. That on the path is for members alone: the baseline is there in any case.
func (j *claimJudge) matches(c result.Cell, where []study.Condition, path bool) bool {
	return !slices.ContainsFunc(where, func(w study.Condition) bool {
		if w.Key == "path" && (!path || c.Role == result.RoleBaseline) {
			return false
		}
		return !slices.ContainsFunc(w.Values, func(value string) bool { return j.holds(c, w.Key, value) })
	})
}

// level is a value of a condition that was asked of a cell, for a clause about the levels of a factor.
type level struct{ cell, key, value, factor string }

// holds says whether a condition with one value holds in a cell. Each clause asks it of all cells again, so that it is worked out once.
func (j *claimJudge) holds(c result.Cell, key, value string) bool {
	of := level{c.ID, key, value, j.factor}
	holds, known := j.levels[of]
	if !known {
		params, known := j.params[c.ID]
		if !known {
			params = study.WithDefaults(c.Params, j.defaults[c.Workload])
			j.params[c.ID] = params
		}
		c.Params = params
		holds = study.Condition{Key: key, Values: []string{value}}.HoldsInComparison(c, j.factor)
		j.levels[of] = holds
	}
	return holds
}

// covered are the settings in which the conditions hold.
func (j *claimJudge) covered(where []study.Condition) []*cellSet {
	var list []*cellSet
	for i := range j.cellSets {
		if j.matches(*j.cellSets[i].baseline, where, false) {
			list = append(list, &j.cellSets[i])
		}
	}
	return list
}

// members are the cells of a table that a clause's names mean.
func (j *claimJudge) members(t *cellSet, c *study.Clause, names []string) []result.Cell {
	named := append(slices.Clone(c.Networks), c.Against...)
	var list []result.Cell
	for _, name := range names {
		if name == t.baseline.Network {
			list = append(list, *t.baseline)
		}
		for _, cell := range t.cells {
			other := name == study.Others && cell.Network != t.baseline.Network && !slices.Contains(named, cell.Network)
			if (other || cell.Network == name && name != t.baseline.Network) && j.matches(cell, c.Where, true) {
				list = append(list, cell)
			}
		}
	}
	return list
}

// metric is the clause's metric as the table's trials hold it, on the clause's scale.
func (j *claimJudge) metric(t *cellSet, c *study.Clause) (metric, bool) {
	key := measure{t.baseline.ID, ""}
	held, ok := j.held[key]
	if !ok {
		held = t.metrics(j.all, Options{})
		j.held[key] = held
	}
	i := slices.IndexFunc(held, func(m metric) bool { return m.name == c.Metric })
	if i < 0 {
		return metric{}, false
	}
	if c.InTime() {
		return inSeconds(held[i]), held[i].unit == "ns"
	}
	return held[i], true
}

// inSeconds is a metric of nanoseconds whose differences are taken in seconds: package stats is made for values as small
// as logarithms. It has readings of its own.
func inSeconds(m metric) metric {
	m.linear, m.unit, m.divide, m.memo = true, "s", second, nil
	return m
}

// absentNetworks are those that a clause names and that none of its settings has.
func (j *claimJudge) absentNetworks(c *study.Clause, covered []*cellSet) []Missing {
	var absent []Missing
	for _, name := range append(slices.Clone(c.Networks), c.Against...) {
		if slices.ContainsFunc(covered, func(t *cellSet) bool { return len(j.members(t, c, []string{name})) > 0 }) {
			continue
		}
		absent = append(absent, Missing{name, j.whyAbsent(name, c.Where)})
	}
	return absent
}

// decisive are those absent networks without which nothing is left of a clause: all that it is about, or all that these are
// held against. It is nil if something is left.
func decisive(c *study.Clause, absent []Missing) []Missing {
	gone := func(names []string) []Missing {
		return slices.DeleteFunc(slices.Clone(absent), func(l Missing) bool { return !slices.Contains(names, l.What) })
	}
	least := 1
	if c.Relation == study.EachOther && !slices.Contains(c.Networks, study.Others) {
		least = 2
	}
	if own := gone(c.Networks); len(c.Networks)-len(own) < least {
		return own
	}
	if other := gone(c.Against); len(c.Against) > 0 && len(other) == len(c.Against) {
		return other
	}
	return nil
}

// whyAbsent says why a network has no cell that could be measured where the conditions hold.
func (j *claimJudge) whyAbsent(name string, where []study.Condition) string {
	var own, matching []result.Cell
	for _, c := range j.cells {
		if c.Network == name || name == study.Others && c.Role == result.RoleCell {
			if own = append(own, c); j.matches(c, where, true) {
				matching = append(matching, c)
			}
		}
	}
	switch {
	case len(own) > 0 && len(matching) == 0:
		return "not in this run at these levels"
	case len(own) > 0:
		return whyNot(matching)
	case name == study.Metal:
		return "needs a bare-metal baseline"
	}
	return notInRun
}

// whyNot says why none of some cells was measured.
func whyNot(cells []result.Cell) string {
	switch {
	case slices.ContainsFunc(cells, func(c result.Cell) bool { return c.Skipped != "" }):
		return "left out by the time budget"
	case slices.ContainsFunc(cells, func(c result.Cell) bool { return c.Unsupported != "" }):
		return "unsupported here"
	}
	return "not measured against a baseline"
}

// noSetting says which condition it is that leaves no setting.
func (j *claimJudge) noSetting(where []study.Condition) Missing {
	cells := j.cells
	usable := func(c result.Cell) bool { return c.Skipped == "" && c.Unsupported == "" }
	some := slices.ContainsFunc(cells, usable)
	why := whyNot(gather.Where(cells, func(c result.Cell) bool { return j.matches(c, where, false) }))
	for _, w := range where {
		left := gather.Where(cells, func(c result.Cell) bool { return j.matches(c, []study.Condition{w}, false) })
		if len(left) == 0 {
			return Missing{w.String(), notInRun}
		}
		// Cells that a longer run would have are no reason where those that meet all conditions are unsupported.
		if some && !slices.ContainsFunc(left, usable) && whyNot(left) == why {
			return Missing{w.String(), why}
		}
		cells = left
	}
	return Missing{"everything", whyNot(cells)}
}
