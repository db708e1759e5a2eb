package insight

import (
	"math"
	"slices"

	"netdelta/experiment/study"
	"netdelta/result"
	"netdelta/stats"
)

// answer is a comparison with what it says of its clause.
type answer struct {
	question
	directComparison
	// builds are of a change between levels: one difference of deltas each.
	builds []stats.Build
	// low and high bound what the clause allows, on the scale of the estimate; NaN for a change between levels.
	low, high float64
	floor     float64
	verdict   string
}

// answer makes a comparison; false if there was nothing to compare.
func (j *claimJudge) answer(q question) (answer, bool) {
	a := answer{question: q, floor: j.floors.of(q.cellSet, q.metric), verdict: Undecided}
	a.low, a.high = bounds(q.clause)
	switch {
	case q.clause.OfEffect():
		a.directComparison, a.floor = j.effect(q), max(a.floor, j.floors.of(q.other, q.metric))
		return a, a.estimate.Builds > 0
	case !q.changes():
		if a.directComparison = j.compare(q.cellSet, q.a, q.b, q.metric); a.indirect {
			a.floor *= 2 // each of the two has one
		}
		return a, a.estimate.Builds > 0
	}
	before, after := j.compare(q.cellSet, q.a, *q.cellSet.baseline, q.metric), j.compare(q.other, q.b, *q.other.baseline, q.metric)
	a.floor += j.floors.of(q.other, q.metric) // the levels have set-ups of their own: what these keep adds up at worst
	from, to := before.locations(), after.locations()
	for i := range min(len(from), len(to)) {
		if x := to[i] - from[i]; !math.IsNaN(x) {
			a.builds, a.batches = append(a.builds, stats.Build{Deltas: []float64{x}}), append(a.batches, i)
		}
	}
	a.estimate = j.options.compare(a.builds, j.options.stats(q.metric))
	return a, a.estimate.Builds > 0
}

// bounds are between what a clause puts the difference, on the scale of comparison.
func bounds(c *study.Clause) (low, high float64) {
	inf := math.Inf(1)
	linear := c.InTime() || c.Metric == metricLoss
	// at is where an amount above (or below) stands.
	at := func(a study.Amount, sign float64) float64 {
		switch {
		case a.Absolute != 0:
			return sign * a.Absolute.Seconds()
		case linear:
			return sign * a.Relative
		}
		return math.Log1p(sign * a.Relative)
	}
	switch c.Relation {
	case study.Below, study.Above, study.Falls, study.Rises:
		sign, far := -1.0, -inf
		if c.Relation == study.Above || c.Relation == study.Rises {
			sign, far = 1, inf
		}
		if c.High != (study.Amount{}) {
			far = at(c.High, sign)
		}
		near := at(c.Low, sign)
		return min(near, far), max(near, far)
	case study.AtMostAbove:
		return -inf, at(c.High, 1)
	case study.AtMostBelow:
		return at(c.High, -1), inf
	case study.Within, study.EachOther, study.Stays:
		most := at(c.High, 1) // on the log scale a ratio and its inverse are treated alike, as verdicts on deltas do
		return -most, most
	}
	return math.NaN(), math.NaN()
}

// weigh gives each answer its verdict.
func (j *claimJudge) weigh(answers []answer) {
	levels, outside := 0, false
	for i := range answers {
		a := &answers[i]
		if a.changes() {
			levels++
		}
		if a.confirmed(j.options) {
			a.verdict = Confirmed
			if a.certain(j.values(a)...) {
				a.verdict = NoTest
			}
		}
		outside = outside || a.outside()
	}
	// Contradictions are found by two methods. A claim that needs both gives each half of what it may err.
	methods := 1
	if levels > 0 && levels < len(answers) {
		methods = 2
	}
	if outside {
		j.contradict(answers, methods)
	}
	for i := range answers {
		if a := &answers[i]; a.changes() && a.unchanged(j.options, levels*methods) {
			a.verdict = Contradicted
		}
	}
}

// values are what the two cells of a comparison measured, in the metric's unit.
func (j *claimJudge) values(a *answer) []float64 {
	var values []float64
	for _, cell := range []result.Cell{a.a, a.b} {
		if d, ok := j.deltas[measure{cell.ID, a.metric.name}]; ok {
			values = append(values, d.Value, d.BaselineValue)
		}
	}
	return values
}

// confirmed says whether a comparison by itself came out as the clause says, at the level of a single test.
func (a *answer) confirmed(o Options) bool {
	e, options := a.estimate, o.stats(a.metric)
	if !e.HasInterval {
		return false
	}
	if a.changes() {
		return (e.Low > 0 || e.High < 0) && a.beyondFloor() && e.P < options.ClaimLevel()
	}
	if !(e.Low >= a.low && e.High <= a.high) {
		return false
	}
	if !math.IsInf(a.low, 0) && !math.IsInf(a.high, 0) {
		return true // two one-sided tests, each at half the level (Schuirmann 1987)
	}
	return a.beyondFloor() && o.against(a.estimate, a.bound()) < options.ClaimLevel()
}

// beyondFloor says whether a direction is no artefact that the null check leaves possible. It is asked only where the clause
// claims a bare difference from nothing; an interval within figures is no direction.
func (a *answer) beyondFloor() bool {
	return !a.changes() && a.bound() != 0 || math.Abs(a.estimate.Center) > a.floor
}

// farOutside says whether the estimate is further from what the clause allows than the null check leaves possible.
func (a *answer) farOutside() bool {
	return a.outside() && math.Abs(a.estimate.Center-a.bound()) > a.floor
}

// outside says whether the whole interval lies beyond what the clause allows.
func (a *answer) outside() bool {
	return !a.changes() && a.estimate.HasInterval && (a.estimate.Low > a.high || a.estimate.High < a.low)
}

// bound is the end of what the clause allows that is nearest to the estimate.
func (a *answer) bound() float64 {
	if math.Abs(a.estimate.Center-a.low) < math.Abs(a.estimate.Center-a.high) {
		return a.low
	}
	return a.high
}

// contradict finds the comparisons that certainly came out against the claim: their p values are corrected over all that
// the claim makes.
func (j *claimJudge) contradict(answers []answer, methods int) {
	var family []int
	var alone []float64
	for i := range answers {
		if a := &answers[i]; !a.changes() && a.estimate.HasInterval {
			family, alone = append(family, i), append(alone, j.options.against(a.estimate, a.bound()))
		}
	}
	for k, p := range j.options.family(alone) {
		a := &answers[family[k]]
		if a.farOutside() && p*float64(methods) < j.options.stats(a.metric).ClaimLevel() {
			a.verdict = Contradicted
		}
	}
}

// unchanged says whether a delta is the same at both levels, to within the margin, at the level of so many tests.
func (a *answer) unchanged(o Options, tests int) bool {
	if !a.estimate.HasInterval {
		return false
	}
	if !(o.Confidence > 0 && o.Confidence < 1) {
		o.Confidence = stats.DefaultConfidence
	}
	if o.Margin <= 0 {
		o.Margin = stats.DefaultMargin
	}
	o.Confidence = 1 - (1-o.Confidence)/float64(tests)
	options := o.stats(a.metric)
	e, margin := o.compare(a.builds, options), math.Log1p(options.Margin)
	return e.Low >= -margin && e.High <= margin
}

// correlated is what a clause about a correlation says, a part for each placement, and what it speaks of in vain. In each setting that it
// covers the correlation must be significant in the direction claimed; it is contradicted where one is significant the other way,
// corrected for the number of settings (Bonferroni).
func (j *claimJudge) correlated(c *study.Clause) (parts []ClaimPart, absent []Missing) {
	covered := j.covered(c.Where)
	if len(covered) == 0 {
		return nil, []Missing{j.noSetting(c.Where)}
	}
	type held struct {
		of   result.Correlation
		base result.Cell
	}
	var all []held
	for _, t := range covered {
		for _, r := range j.correlations {
			if r.Setting == t.setting && correlates(r, c) {
				all = append(all, held{r, *t.baseline})
			}
		}
	}
	if len(all) == 0 {
		return nil, []Missing{{c.Metric + " with " + c.With.Metric + " of " + c.With.Workload, "not measured over three networks"}}
	}
	for at, own := range By(all, func(h held) result.Placement { return h.of.Placement }) {
		verdicts := make([]string, len(own))
		for i, h := range own {
			verdicts[i] = correlationVerdict(h.of, c.Relation == study.RisesWith, len(all))
		}
		p := ClaimPart{Clause: c, Placement: at, Verdict: allOf(verdicts), Of: len(own), Settings: len(own)}
		for i, h := range own {
			if verdicts[i] != p.Verdict {
				continue
			}
			if p.Alike++; p.Correlation == nil || math.Abs(h.of.Pearson) < math.Abs(p.Correlation.Pearson) {
				p.Correlation, p.Decisive = &own[i].of, ClaimComparison{A: h.base, B: h.base}
			}
		}
		parts = append(parts, p)
	}
	return parts, nil
}

// correlates says whether a correlation is the one that a clause is about.
func correlates(r result.Correlation, c *study.Clause) bool {
	return r.Metric == c.Metric && c.With == study.Raw{Metric: r.RawMetric, Workload: r.RawWorkload}
}

// correlationVerdict is what one of so many correlations says of a claim.
func correlationVerdict(c result.Correlation, rises bool, of int) string {
	claimed, against := result.CorrelationRises, result.CorrelationFalls
	if !rises {
		claimed, against = against, claimed
	}
	switch n := len(c.Points); {
	case c.Verdict == claimed:
		return Confirmed
	case c.Verdict == against && n > 3:
		// Two-sided, by Fisher's z, as the interval is.
		p := math.Erfc(math.Abs(math.Atanh(c.Pearson)) * math.Sqrt(float64(n-3)/2))
		if p*float64(of) < 1-stats.DefaultConfidence {
			return Contradicted
		}
	}
	return Undecided
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
