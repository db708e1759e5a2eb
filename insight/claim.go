package insight

import (
	"fmt"

	"netdelta/experiment/study"
	"netdelta/result"
	"netdelta/stats"
)

// Verdicts on claims.
const (
	// Confirmed is a claim of which every comparison came out as it says.
	Confirmed = "confirmed"
	// Contradicted is one of which some comparison certainly came out against it.
	Contradicted = "contradicted"
	// Undecided is one of which the measurements do not tell.
	Undecided = "unresolved"
	// NotTested is one that speaks of nothing that was measured.
	NotTested = "not-tested"
)

// mostQuestions bounds the comparisons that one claim may take. The claims of a real study take hundreds; at this
// many a claim costs about as much as the deltas of the run.
const mostQuestions = 10_000

// Claims judges the claims of a run by its trials, in their order: each with its verdict, and with what was measured in
// words. run.Deltas must be filled in. defaults are the default parameters by workload, which conditions of claims may name
// though no cell does.
//
// Networks are held against each other directly, round by round within builds and with builds as the replications, as
// cells are against the baseline; two intervals against the baseline are never held against each other. A claim is a
// conjunction over all its clauses, over the settings that these cover, and over the networks that they name. Hence it is
// confirmed when each comparison is significant by itself, with no correction: an intersection-union test keeps the level
// of its parts (Berger, "Multiparameter hypothesis testing and acceptance sampling", 1982). It is contradicted when at least
// one comparison is significant the other way, and there the p values are corrected over all comparisons of the claim, by
// StepDown. What could not be compared is left out of the verdict, and named.
func Claims(run result.Run, trials []result.Trial, defaults map[string]result.Params, o Options) []result.Claim {
	judged := make([]result.Claim, len(run.Claims))
	if len(judged) == 0 {
		return judged
	}
	d := newDocket(run, trials, defaults, o)
	for i, c := range run.Claims {
		c.Verdict, c.Measured = d.judge(c.Expect)
		judged[i] = c
	}
	return judged
}

// docket is what claims are judged by.
type docket struct {
	cells    []result.Cell
	tables   []table
	all      []sitting
	defaults map[string]result.Params
	options  Options
	deltas   map[measure]result.Delta
	meetings map[comparing]meeting
	held     map[measure][]metric // metrics of a table, by its baseline's cell
	// factor is the one whose levels the clause under question is about, "" where it is about none.
	factor string
}

// measure is a metric of a cell.
type measure struct{ cell, metric string }

func newDocket(run result.Run, trials []result.Trial, defaults map[string]result.Params, o Options) *docket {
	d := &docket{
		cells: run.Cells, all: sittings(trials), defaults: defaults, options: o,
		deltas: map[measure]result.Delta{}, meetings: map[comparing]meeting{}, held: map[measure][]metric{},
	}
	for _, t := range tables(run.Cells) {
		if t.baseline != nil {
			d.tables = append(d.tables, t)
		}
	}
	for _, delta := range run.Deltas {
		d.deltas[measure{delta.Cell, delta.Metric}] = delta
	}
	return d
}

// judge gives the verdict on one statement and what was measured.
func (d *docket) judge(expect string) (verdict, measured string) {
	clauses, err := study.ParseExpectation(expect)
	if err != nil {
		return NotTested, fmt.Sprintf("the statement can't be read: %v", err)
	}
	if why := d.options.timeless(clauses); why != "" {
		return NotTested, why
	}
	var answers []answer
	var absent []lack
	for i := range clauses {
		asked, missing := d.questions(&clauses[i], mostQuestions-len(answers))
		absent = append(absent, missing...)
		if len(answers)+len(asked) > mostQuestions {
			return NotTested, fmt.Sprintf("too many comparisons: it takes more than %d; narrow it by conditions", mostQuestions)
		}
		for _, q := range asked {
			if a, ok := d.answer(q); ok {
				answers = append(answers, a)
			} else {
				absent = append(absent, lack{d.silent(q), noTrial})
			}
		}
	}
	if len(answers) == 0 {
		return NotTested, notTested(absent)
	}
	d.weigh(answers)
	verdict = conjunction(answers)
	return verdict, d.measured(clauses, answers, verdict, open(absent, answers))
}

// conjunction is the verdict over several comparisons.
func conjunction(answers []answer) string {
	verdict := Confirmed
	for _, a := range answers {
		if a.verdict == Contradicted {
			return Contradicted
		}
		if a.verdict != Confirmed {
			verdict = Undecided
		}
	}
	return verdict
}

// comparing names a comparison of two cells, or of a cell with the baseline and its twin (b is then the baseline).
type comparing struct {
	a, b, metric string
	linear       bool
}

// meeting is a comparison that was made.
type meeting struct {
	estimate stats.Estimate
	sittings []int
	apart    bool // the two never stood in one build: their deltas were compared
}

// compare holds cell a directly against b, on the metric's scale. It is made once.
func (d *docket) compare(t *table, a, b result.Cell, m metric) meeting {
	if a.Role == result.RoleBaseline {
		return d.compare(t, b, a, m).reversed()
	}
	key := comparing{a.ID, b.ID, m.name, m.linear}
	if c, ok := d.meetings[key]; ok {
		return c
	}
	others := []string{b.ID}
	if b.Role == result.RoleBaseline && a.Role == result.RoleCell && t.twin != nil {
		others = append(others, t.twin.ID)
	}
	p := pair(m, a.ID, others, d.all)
	c := meeting{estimate: d.options.compare(p.builds, d.options.stats(m)), sittings: p.sittings}
	if groups := t.apart(d.all); len(p.builds) == 0 && b.Role == result.RoleCell && t.baseline != nil && groups[a.ID] != groups[b.ID] {
		c = acrossBuilds(d.compare(t, a, *t.baseline, m), d.compare(t, b, *t.baseline, m), d.options, d.options.stats(m))
	}
	d.meetings[key] = c
	return c
}

// effect holds a cell directly against the same network at another level: the baseline there stands with its twin, as in
// Effects.
func (d *docket) effect(q question) meeting {
	key := comparing{q.a.ID, q.b.ID, q.metric.name, q.metric.linear}
	if c, ok := d.meetings[key]; ok {
		return c
	}
	references := []string{q.b.ID}
	if q.b.Role == result.RoleBaseline && q.other.twin != nil {
		references = append(references, q.other.twin.ID)
	}
	p := pair(q.metric, q.a.ID, references, d.all)
	c := meeting{estimate: stats.Compare(p.builds, d.options.stats(q.metric)), sittings: p.sittings}
	d.meetings[key] = c
	return c
}

// reversed is the same comparison seen from the other side.
func (c meeting) reversed() meeting {
	e := c.estimate
	e.Center, e.Low, e.High = -e.Center, -e.High, -e.Low
	e.Locations = make([]float64, len(c.estimate.Locations))
	for i, x := range c.estimate.Locations {
		e.Locations[i] = -x
	}
	return meeting{e, c.sittings, c.apart}
}

// locations are those of the builds by sitting, NaN where nothing was measured.
func (c meeting) locations() []float64 {
	return contrast{estimate: c.estimate, sittings: c.sittings}.locations(nil)
}

// floor is what the null check leaves possible in a setting, on the metric's scale.
func (d *docket) floor(t *table, m metric) float64 {
	if t.twin == nil {
		return 0
	}
	null := d.compare(t, *t.twin, *t.baseline, m).estimate
	if null.Builds == 0 {
		return 0
	}
	return stats.NoiseFloor(null)
}
