package insight

import (
	"cmp"
	"math"
	"slices"

	"netdelta/experiment/study"
	"netdelta/internal/gather"
	"netdelta/network"
	"netdelta/result"
	"netdelta/stats"
)

// Verdicts on claims.
const (
	// Confirmed is a claim of which every comparison came out as it says.
	Confirmed = "confirmed"
	// ConfirmedInPart is one of which every comparison came out as it says, but not all that it speaks of was put to the test.
	ConfirmedInPart = "confirmed in part"
	// NoTest is one whose bounds could not have failed here.
	NoTest = "not a test here"
	// NotComparable is one that was measured in a study that departs from what its source measured, as Differs of the claim says.
	NotComparable = "not comparable here"
	// Contradicted is one of which some comparison certainly came out against it.
	Contradicted = "contradicted"
	// Undecided is one of which the measurements do not tell.
	Undecided = "unresolved"
	// NotTested is one that speaks of nothing that was measured.
	NotTested = "not-tested"
)

// MostComparisons bounds the comparisons that one claim may take. The claims of a real study take hundreds; at this
// many a claim costs about as much as the deltas of the run.
const MostComparisons = 10_000

// Answer is what a run says of one claim.
type Answer struct {
	Verdict string
	// Unread says why the statement can't be read, TooMany that it takes more than MostComparisons, and OfTime that it speaks of
	// time while the run counts instructions. Such a claim is not tested.
	Unread          error
	TooMany, OfTime bool
	// Differs is why the verdict is NotComparable.
	Differs string
	// Parts are what the claim says by clause and placement. Metrics says that its clauses are about several metrics.
	Parts   []ClaimPart
	Metrics bool
	// Missing is what the claim was judged without; of a claim that was not tested, what keeps it from being.
	Missing []Missing
	// Extent is how much of what the claim speaks of was put to the test.
	Extent Extent
}

// ClaimPart is what a claim says in one placement, by one of its clauses.
type ClaimPart struct {
	Clause    *study.Clause
	Placement result.Placement
	Verdict   string
	// Decisive is the comparison that is nearest to another verdict, or furthest against the claim.
	Decisive ClaimComparison
	// Correlation is what the verdict hangs on where the clause is about one; Decisive has a cell of its setting then.
	Correlation *result.Correlation
	// Alike of Of comparisons have the part's verdict; they are made in so many Settings.
	Alike, Of, Settings int
}

// ClaimComparison is a comparison of two cells in a metric.
type ClaimComparison struct {
	A, B result.Cell
	// DeltaA and DeltaB are the cells' deltas against their baselines, zero for the baseline itself.
	DeltaA, DeltaB result.Delta
	// Estimate is of A against B, on the log scale unless Linear.
	Estimate stats.Estimate
	Linear   bool
}

// Missing is something that a claim speaks of and the run does not have.
type Missing struct{ What, Why string }

// claims judges the claims of a run by its trials, in their order. run.Deltas must be filled in. defaults are the default parameters
// by workload, which conditions of claims may name though no cell does.
//
// Networks are compared directly, round by round within builds and with builds as the replications, as
// cells are with the baseline; two intervals against the baseline are never compared. A claim is a
// conjunction over all its clauses, over the settings that these cover, and over the networks that they name. Hence it is
// confirmed when each comparison is significant by itself, with no correction: an intersection-union test keeps the level
// of its parts (Berger, "Multiparameter hypothesis testing and acceptance sampling", 1982). It is contradicted when at least
// one comparison is significant the other way, and there the p values are corrected over all comparisons of the claim, by
// Holm. What could not be compared is left out of the verdict, and named.
func (b *basis) claims(run result.Run, defaults map[string]result.Params) []Answer {
	judged := make([]Answer, len(run.Claims))
	if len(judged) == 0 {
		return judged
	}
	j := newClaimJudge(run, b, defaults)
	for i, c := range run.Claims {
		judged[i] = j.judge(c.Expect).compared(c.Differs)
	}
	return judged
}

// claimJudge holds what claims are judged by.
type claimJudge struct {
	cells    []result.Cell
	cellSets []cellSet
	all      []batch
	defaults map[string]result.Params
	options  Options
	deltas   map[measure]result.Delta
	made     map[comparing]directComparison
	held     map[measure][]metric     // metrics of a table, by its baseline's cell
	levels   map[level]bool           // whether a condition holds
	params   map[string]result.Params // of cells, with their workloads' defaults
	floors   *floors
	// factor is the one whose levels the clause under question is about, "" where it is about none.
	factor       string
	correlations []result.Correlation
}

// measure is a metric of a cell.
type measure struct{ cell, metric string }

func newClaimJudge(run result.Run, b *basis, defaults map[string]result.Params) *claimJudge {
	j := &claimJudge{
		cells: run.Cells, all: b.all, defaults: defaults, options: b.options, floors: b.floors,
		correlations: run.Correlations, deltas: map[measure]result.Delta{}, made: map[comparing]directComparison{}, held: map[measure][]metric{},
		levels: map[level]bool{}, params: map[string]result.Params{},
	}
	for _, t := range b.sets {
		if t.baseline != nil {
			j.cellSets = append(j.cellSets, t)
		}
	}
	for _, delta := range run.Deltas {
		j.deltas[measure{delta.Cell, delta.Metric}] = delta
	}
	return j
}

// compared is the answer to a claim of a study that differs from its source in something, "" for nothing: what the same statement comes to
// under other conditions says nothing for or against what was published.
func (a Answer) compared(differs string) Answer {
	if differs != "" && a.Verdict != NotTested {
		a.Verdict, a.Differs = NotComparable, differs
	}
	return a
}

// callAsRun has clauses call networks as the run does: a claim is about a mechanism, of which a run may have a product by its own name.
func (j *claimJudge) callAsRun(clauses []study.Clause) {
	called := map[string]string{}
	for _, c := range j.cells {
		if m := network.Mechanism(c.Network); m != c.Network && called[m] == "" {
			called[m] = c.Network
		}
	}
	for _, c := range j.cells {
		delete(called, c.Network)
	}
	for i := range clauses {
		for _, names := range [][]string{clauses[i].Networks, clauses[i].Against} {
			for k, name := range names {
				names[k] = cmp.Or(called[name], name)
			}
		}
	}
}

// judge gives the verdict on one statement and what was measured.
func (j *claimJudge) judge(expect string) Answer {
	clauses, err := study.ParseExpectation(expect, j.options.Own...)
	if err != nil {
		return Answer{Verdict: NotTested, Unread: err}
	}
	j.callAsRun(clauses)
	if j.options.ofTime(clauses) {
		return Answer{Verdict: NotTested, OfTime: true}
	}
	var answers []answer
	var parts []ClaimPart
	lacking := make([]int, len(clauses)) // levels of each that the run has nothing of
	missing := make([][]Missing, len(clauses))
	for i := range clauses {
		for _, w := range j.absentLevels(&clauses[i]) {
			missing[i] = append(missing[i], Missing{w.String(), notInRun})
			lacking[i] += len(w.Values)
		}
		if clauses[i].OfCorrelation() {
			own, without := j.correlated(&clauses[i])
			parts, missing[i] = append(parts, own...), append(missing[i], without...)
			continue
		}
		asked, without := j.questions(&clauses[i], MostComparisons-len(answers))
		missing[i] = append(missing[i], without...)
		if len(answers)+len(asked) > MostComparisons {
			return Answer{Verdict: NotTested, TooMany: true}
		}
		for _, q := range asked {
			if a, ok := j.answer(q); ok {
				answers = append(answers, a)
			} else {
				missing[i] = append(missing[i], Missing{j.silent(q), noTrial})
			}
		}
	}
	absent := slices.Concat(missing...)
	if len(answers)+len(parts) == 0 {
		return Answer{Verdict: NotTested, Missing: absent}
	}
	if i := withoutWorkload(clauses, answers, parts); i >= 0 {
		return Answer{Verdict: NotTested, Missing: missing[i]}
	}
	j.weigh(answers)
	extent := j.extent(clauses, lacking, answers, parts)
	verdicts := []string{conjunction(answers)}
	for _, p := range parts {
		verdicts = append(verdicts, p.Verdict)
	}
	return Answer{
		Verdict: inPart(allOf(verdicts), extent), Extent: extent, Parts: append(j.parts(answers), parts...), Missing: open(absent, answers),
		Metrics: slices.ContainsFunc(clauses, func(c study.Clause) bool { return c.Metric != clauses[0].Metric }),
	}
}

// withoutWorkload is the first clause that names a workload of which the claim has no comparison, -1 if there is none. Such a claim is not
// judged by its other clauses: what a raw round trip takes says nothing of an application that was not measured.
func withoutWorkload(clauses []study.Clause, answers []answer, correlated []ClaimPart) int {
	measured := map[string]bool{}
	for _, a := range answers {
		measured[a.a.Workload], measured[a.b.Workload] = true, true
	}
	for _, p := range correlated {
		measured[p.Decisive.A.Workload] = true
	}
	return slices.IndexFunc(clauses, func(c study.Clause) bool {
		for _, w := range c.Where {
			if w.Key == "workload" {
				return !slices.ContainsFunc(w.Values, func(name string) bool { return measured[name] })
			}
		}
		return false
	})
}

// parts sorts answers by clause and placement, in the order in which they come.
func (j *claimJudge) parts(answers []answer) []ClaimPart {
	type key struct {
		clause *study.Clause
		at     result.Placement
	}
	var all []ClaimPart
	for k, own := range By(answers, func(a answer) key { return key{a.clause, a.a.Placement} }) {
		part := ClaimPart{Clause: k.clause, Placement: k.at}
		j.decide(&part, own)
		all = append(all, part)
	}
	return all
}

// decide fills in a part by its answers.
func (j *claimJudge) decide(p *ClaimPart, answers []answer) {
	p.Verdict, p.Of = conjunction(answers), len(answers)
	var shown *answer
	settings := map[result.Setting]bool{}
	for i := range answers {
		a := &answers[i]
		settings[a.a.Setting()] = true
		if a.verdict != p.Verdict {
			continue
		}
		if p.Alike++; shown == nil || a.ease() < shown.ease() {
			shown = a
		}
	}
	p.Settings = len(settings)
	p.Decisive = ClaimComparison{
		A: shown.a, B: shown.b, Estimate: shown.estimate, Linear: shown.metric.linear,
		DeltaA: j.deltas[measure{shown.a.ID, shown.metric.name}], DeltaB: j.deltas[measure{shown.b.ID, shown.metric.name}],
	}
}

// ease is how far an estimate lies inside of what its clause allows; it is negative outside.
func (a *answer) ease() float64 {
	x := a.estimate.Center
	if a.changes() {
		return math.Abs(x)
	}
	return min(x-a.low, a.high-x)
}

// conjunction is the verdict over several comparisons.
func conjunction(answers []answer) string {
	verdicts := gather.Each(answers, func(a answer) string { return a.verdict })
	return allOf(verdicts)
}

// allOf is the verdict where all have to hold.
func allOf(verdicts []string) string {
	verdict := NoTest
	for _, v := range verdicts {
		switch {
		case v == Contradicted:
			return Contradicted
		case v == Undecided:
			verdict = Undecided
		case v == Confirmed && verdict == NoTest:
			verdict = Confirmed
		}
	}
	return verdict
}

// comparing names a comparison of two cells, or of a cell with the baseline and its A/A control (b is then the baseline).
type comparing struct {
	a, b, metric string
	linear       bool
}

// directComparison is a comparison that was made.
type directComparison struct {
	estimate stats.Estimate
	batches  []int
	indirect bool // the two never stood in one build: their deltas were compared
}

// compare compares cell a directly with b, on the metric's scale.
func (j *claimJudge) compare(t *cellSet, a, b result.Cell, m metric) directComparison {
	return j.once(comparing{a.ID, b.ID, m.name, m.linear}, func() directComparison {
		return t.compareDirectly(a, b, m, t.groups(j.all), j.all, j.options)
	})
}

// effect compares a cell directly with the same network at another level: the baseline there stands with its A/A control, as in
// Effects.
func (j *claimJudge) effect(q question) directComparison {
	return j.once(comparing{q.a.ID, q.b.ID, q.metric.name, q.metric.linear}, func() directComparison {
		references := []string{q.b.ID}
		if q.b.Role == result.RoleBaseline && q.other.control != nil {
			references = append(references, q.other.control.ID)
		}
		p := pairBuilds(q.metric, q.a.ID, references, j.all)
		return directComparison{estimate: stats.Compare(p.builds, j.options.stats(q.metric)), batches: p.batches}
	})
}

// once makes a comparison, unless it was made before.
func (j *claimJudge) once(key comparing, compare func() directComparison) directComparison {
	c, made := j.made[key]
	if !made {
		c = compare()
		j.made[key] = c
	}
	return c
}

// reversed is the same comparison seen from the other side.
func (c directComparison) reversed() directComparison {
	e := c.estimate
	e.Center, e.Low, e.High = -e.Center, -e.High, -e.Low
	e.Locations = make([]float64, len(c.estimate.Locations))
	for i, x := range c.estimate.Locations {
		e.Locations[i] = -x
	}
	return directComparison{e, c.batches, c.indirect}
}

// locations are the builds' locations by batch, NaN where nothing was measured.
func (c directComparison) locations() []float64 {
	var row []float64
	for i, batch := range c.batches {
		for len(row) < batch {
			row = append(row, math.NaN())
		}
		row = append(row, c.estimate.Locations[i])
	}
	return row
}
