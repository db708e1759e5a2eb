package insight

import (
	"slices"

	"netdelta/experiment/study"
	"netdelta/result"
)

// question is one comparison that a clause asks for: of a against b in the setting of table; for a change between levels, of
// the deltas of a in that setting and of b, which is the same network, in the setting of other; for an effect, of a in that
// setting against b, which is the same network, in the setting of other.
type question struct {
	clause       *study.Clause
	metric       metric
	table, other *table
	a, b         result.Cell
}

// changes says whether the question is about two deltas and not about two cells.
func (q question) changes() bool { return q.clause.Relation == study.Changes }

// silent names the network that leaves a question without an answer.
func (d *docket) silent(q question) string {
	if slices.ContainsFunc(d.all, func(s sitting) bool { return s.good(q.a.ID) != nil }) {
		return q.b.Network
	}
	return q.a.Network
}

// noTrial is why a network that was to be measured has no answer.
const noTrial = "no trial of it counts"

// open leaves out of what is missing in some setting the networks that have answers in others.
func open(missing []lack, answers []answer) []lack {
	return slices.DeleteFunc(missing, func(l lack) bool {
		return l.why == noTrial && slices.ContainsFunc(answers, func(a answer) bool { return a.a.Network == l.what || a.b.Network == l.what })
	})
}

// lack is something that a claim speaks of and the run does not have.
type lack struct{ what, why string }

// questions are the comparisons that a clause asks for, at most one more than most, and what it speaks of in vain.
func (d *docket) questions(c *study.Clause, most int) (asked []question, absent []lack) {
	if c.BetweenLevels() {
		return d.changes(c, most)
	}
	covered := d.covered(c.Where)
	if len(covered) == 0 {
		return nil, []lack{d.noSetting(c.Where)}
	}
	absent = d.absentNetworks(c, covered)
	if why := decisive(c, absent); why != nil {
		return nil, why
	}
	measured := false
	for _, t := range covered {
		m, ok := d.metric(t, c)
		if !ok {
			continue
		}
		measured = true
		subjects, against := d.members(t, c, c.Networks), d.members(t, c, c.Against)
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
		return nil, []lack{{c.Metric, "not measured"}}
	}
	if len(asked) == 0 && len(absent) == 0 {
		absent = []lack{{"networks to compare", "not in this run"}}
	}
	return asked, absent
}

// samePath says whether clients reach the servers of two cells in the same way; the baseline has only one.
func samePath(a, b result.Cell) bool {
	return a.Path == b.Path || a.Role == result.RoleBaseline || b.Role == result.RoleBaseline
}

// changes are the questions of a clause about two levels.
func (d *docket) changes(c *study.Clause, most int) (asked []question, absent []lack) {
	own := *d
	d, own.factor = &own, c.From.Key
	from, to := append(slices.Clone(c.Where), c.From), append(slices.Clone(c.Where), c.To)
	before, after := d.covered(from), d.covered(to)
	for _, side := range []struct {
		tables []*table
		where  []study.Condition
	}{{before, from}, {after, to}} {
		if len(side.tables) == 0 {
			absent = append(absent, d.noSetting(side.where))
		}
	}
	if len(absent) > 0 {
		return nil, absent
	}
	absent = d.absentNetworks(c, append(slices.Clone(before), after...))
	if why := decisive(c, absent); why != nil {
		return nil, why
	}
	for _, t := range before {
		m, ok := d.metric(t, c)
		if !ok {
			continue
		}
		for _, other := range after {
			if !differOnly(t.setting, other.setting, c.From.Key) {
				continue
			}
			asked = append(asked, d.between(c, m, t, other)...)
			if len(asked) > most {
				return asked, absent
			}
		}
	}
	if len(asked) == 0 && len(absent) == 0 {
		absent = []lack{{c.Metric, "not measured at both levels"}}
	}
	return asked, absent
}

// between are the questions about the networks of two settings that differ in a clause's factor: of their deltas, or of
// themselves.
func (d *docket) between(c *study.Clause, m metric, from, to *table) []question {
	var asked []question
	for _, a := range d.members(from, c, c.Networks) {
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
func (d *docket) matches(c result.Cell, where []study.Condition, path bool) bool {
	c.Params = study.WithDefaults(c.Params, d.defaults[c.Workload])
	return !slices.ContainsFunc(where, func(w study.Condition) bool {
		if w.Key == "path" && (!path || c.Role == result.RoleBaseline) {
			return false
		}
		return !w.HoldsBeside(c, d.factor)
	})
}

// covered are the settings in which the conditions hold.
func (d *docket) covered(where []study.Condition) []*table {
	var list []*table
	for i := range d.tables {
		if d.matches(*d.tables[i].baseline, where, false) {
			list = append(list, &d.tables[i])
		}
	}
	return list
}

// members are the cells of a table that a clause's names mean.
func (d *docket) members(t *table, c *study.Clause, names []string) []result.Cell {
	named := append(slices.Clone(c.Networks), c.Against...)
	var list []result.Cell
	for _, name := range names {
		if name == t.baseline.Network {
			list = append(list, *t.baseline)
		}
		for _, cell := range t.cells {
			other := name == study.Others && cell.Network != t.baseline.Network && !slices.Contains(named, cell.Network)
			if (other || cell.Network == name && name != t.baseline.Network) && d.matches(cell, c.Where, true) {
				list = append(list, cell)
			}
		}
	}
	return list
}

// metric is the clause's metric as the table's trials hold it, on the clause's scale.
func (d *docket) metric(t *table, c *study.Clause) (metric, bool) {
	key := measure{t.baseline.ID, ""}
	held, ok := d.held[key]
	if !ok {
		held = t.metrics(d.all, Options{})
		d.held[key] = held
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

// inSeconds is a metric of nanoseconds whose differences are taken in seconds: package stats is made for values whose size is
// that of logarithms.
func inSeconds(m metric) metric {
	bursts, trial := m.bursts, m.trial
	m.linear, m.unit = true, "s"
	if bursts != nil {
		m.bursts = func(b *result.Bursts) []float64 {
			column := slices.Clone(bursts(b))
			for i := range column {
				column[i] /= 1e9
			}
			return column
		}
	}
	if trial != nil {
		m.trial = func(s *summary) (float64, string) {
			value, reason := trial(s)
			return value / 1e9, reason
		}
	}
	return m
}

// absentNetworks are those that a clause names and that none of its settings has.
func (d *docket) absentNetworks(c *study.Clause, covered []*table) []lack {
	var absent []lack
	for _, name := range append(slices.Clone(c.Networks), c.Against...) {
		if slices.ContainsFunc(covered, func(t *table) bool { return len(d.members(t, c, []string{name})) > 0 }) {
			continue
		}
		absent = append(absent, lack{name, d.whyAbsent(name, c.Where)})
	}
	return absent
}

// decisive are those absent networks without which nothing is left of a clause: all that it is about, or all that these are
// held against. It is nil if something is left.
func decisive(c *study.Clause, absent []lack) []lack {
	gone := func(names []string) []lack {
		return slices.DeleteFunc(slices.Clone(absent), func(l lack) bool { return !slices.Contains(names, l.what) })
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
func (d *docket) whyAbsent(name string, where []study.Condition) string {
	var own, matching []result.Cell
	for _, c := range d.cells {
		if c.Network == name || name == study.Others && c.Role == result.RoleCell {
			if own = append(own, c); d.matches(c, where, true) {
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
	return "not in this run"
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
func (d *docket) noSetting(where []study.Condition) lack {
	cells := d.cells
	for _, w := range where {
		var left []result.Cell
		for _, c := range cells {
			if d.matches(c, []study.Condition{w}, false) {
				left = append(left, c)
			}
		}
		if len(left) == 0 {
			return lack{w.String(), "not in this run"}
		}
		usable := func(c result.Cell) bool { return c.Skipped == "" && c.Unsupported == "" }
		if slices.ContainsFunc(cells, usable) && !slices.ContainsFunc(left, usable) {
			return lack{w.String(), whyNot(left)}
		}
		cells = left
	}
	return lack{"everything", whyNot(cells)}
}
