package insight

import (
	"math"
	"slices"

	"netdelta/internal/gather"
	"netdelta/result"
	"netdelta/stats"
)

// LossMargin is the margin of the metric loss, as a difference of shares: below one datagram in a thousand two networks
// count as equally reliable.
const LossMargin = 0.001

// Options are what verdicts rest on. The zero value is valid and means the defaults of package stats.
type Options struct {
	// Confidence of each interval, in (0,1).
	Confidence float64
	// Margin within which a ratio counts as no change: 0.02 is 2%.
	Margin float64
	// MinBuilds is how many builds an interval takes.
	MinBuilds int
	// Sequential says that the run decided by what it saw when to stop measuring a cell, as by Settled: intervals are then
	// wider, so that what is called 95% comes true.
	Sequential bool
	// Headlines is the headline metric by workload. A workload that is not in it has p50, or throughput if it has no
	// latencies.
	Headlines map[string]string
	// Own are the parameters that workloads declare.
	Own []result.Parameter
	// Exact says that the run counted instructions: intervals are ranges over its seeds.
	Exact bool
	// HeadlinesOnly leaves all other metrics out, for a run that asks after each build what is resolved.
	HeadlinesOnly bool
	// Repeating is what runs on the machine differ by, which intervals and verdicts of deltas allow for; nil for those of one run alone.
	Repeating *result.Repeating
	// Unpaired says that cells and baselines were not measured in turn, as in files of other programs: nothing pairs a build of one with
	// a build of the other.
	Unpaired bool
	// StrictNull says that a null check that failed leaves no delta of its setting that is called different: of fleets, whose pods and places
	// differ from network to network as they do from the baseline to its A/A control.
	StrictNull bool
	// busy is the share of the processors' time that other programs took throughout the run (busyShare).
	busy float64
	// unwritten leaves out what verdicts don't rest on.
	unwritten bool
	// quantile remembers Student's quantiles; nil computes each.
	quantile func(p, freedom float64) float64
}

// stats are the options for one metric.
func (o Options) stats(m metric) stats.Options {
	s := stats.Options{Confidence: o.Confidence, Margin: o.Margin, MinBuilds: o.MinBuilds, Sequential: o.Sequential, Quantile: o.quantile}
	if m.linear {
		s.Margin = LossMargin
	}
	return s
}

// contrast is a delta in the making, with what its verdict needs.
type contrast struct {
	of       *cellSet // nil for one that stands in no setting
	delta    result.Delta
	metric   metric
	estimate stats.Estimate
	time     stats.Estimate  // the difference in seconds; without builds where the metric is no time
	repeated *stats.Estimate // estimate for repeating the run; nil where that is not known or not asked for
	runs     runSpread       // what it allows for
	batches  []int           // of each location of the estimate
	// floor is what the null checks leave possible (floors.of), on the scale of the estimate.
	floor float64
}

// settled says which cells are known well enough for a run that looks after each build to stop measuring them: those that
// stats.Resolved says it of, by their headline, and whose verdict does not wait for the test of the whole family. That test
// depends on the other deltas too: a cell may be settled now and not after the next build, and is then measured again. A cell
// that an effect is taken of or against waits for that effect as well. Every cell that is to be measured is in the answer; the
// deltas are those that it rests on.
func (b *basis) settled() (settled map[string]bool, deltas []result.Delta) {
	o := b.options
	c := b.compareAll()
	settled, deltas = map[string]bool{}, judged(c.networks, o)
	for _, cell := range b.cells {
		if cell.Role == result.RoleCell && cell.Unsupported == "" && cell.Skipped == "" {
			settled[cell.ID] = false
		}
	}
	for i, d := range deltas {
		n := c.networks[i]
		options := o.stats(n.metric)
		settled[d.Cell] = stats.Resolved(n.estimate, len(c.networks), n.floor, options) && !waits(d, options) &&
			(o.busy == 0 || d.Verdict != string(stats.Unresolved))
	}
	open, measured := b.openEffects()
	for cell := range open {
		if settled[cell] {
			settled[cell] = false
		}
	}
	if len(settled) == 0 {
		// Nothing but baselines under several conditions: such a run is about the effects alone, and the A/A controls stand for the baselines.
		for _, t := range b.sets {
			if t.baseline != nil && t.control != nil && measured {
				settled[t.control.ID] = !open[t.baseline.ID]
			}
		}
	}
	return settled, deltas
}

// waits says of a delta whose interval excludes no change that chance is not yet excluded by the test over its family.
func waits(d result.Delta, o stats.Options) bool {
	low, high := costRange(d)
	return d.Verdict == string(stats.Unresolved) && (low > 0 || high < 0) && d.PAdjusted != nil && *d.PAdjusted > o.ClaimLevel()
}

// compareAll holds every cell against the baseline of its setting, and the baseline's A/A control against the baseline, in
// each metric that was measured, the headline first. A cell of which nothing could be paired has no contrast: a check says why.
func (b *basis) compareAll() comparison {
	parts := make([]comparison, len(b.sets))
	inParallel(len(parts), func(i int) { parts[i] = b.compareMetrics(&b.sets[i]) })
	var whole comparison
	for _, c := range parts {
		b.floors.know(c.nulls)
		whole.networks, whole.controls = append(whole.networks, c.networks...), append(whole.controls, c.controls...)
		whole.checks, whole.uneven = append(whole.checks, c.checks...), append(whole.uneven, c.uneven...)
	}
	for _, c := range whole.controls {
		c.delta.Floor = b.floors.written(c.of, c.metric)
	}
	for _, c := range whole.networks {
		c.floor = b.floors.of(c.of, c.metric)
		c.delta.Floor = b.floors.written(c.of, c.metric)
	}
	return whole
}

// comparison is the contrasts of settings.
type comparison struct {
	networks, controls []*contrast // A/A controls has the null check, or nothing
	nulls              map[nullCheck]stats.Estimate
	checks             []Check // what can't be compared, and level steps
	uneven             []Check // whose bursts scatter otherwise, or whose deltas hang on the machine's state
}

// compareMetrics makes the contrasts of one setting, the headline's first.
func (b *basis) compareMetrics(t *cellSet) comparison {
	if t.baseline == nil {
		return comparison{checks: baselineChecks(*t)}
	}
	made := comparison{nulls: map[nullCheck]stats.Estimate{}}
	groups := t.groups(b.all)
	for i, m := range b.metrics[t.at] {
		headline := i == 0
		if !headline && b.options.HeadlinesOnly {
			break
		}
		b.remembering(m, func(m metric) {
			paired, checks := b.compare(&made, t, m, headline, groups)
			if headline {
				made.checks = checks
			}
			if headline && !b.options.HeadlinesOnly {
				made.checks = append(made.checks, t.stepChecks(m, paired, b.all)...)
			}
			if headline && !b.options.unwritten {
				made.uneven = append(b.unevenChecks(t, m, paired), b.stateChecks(t, m, paired)...)
			}
		})
	}
	return made
}

// compare holds the A/A control against the baseline, and each network against both. The groups come from cellSet.groups. It returns
// what was paired, by cell, and what could not be compared.
func (b *basis) compare(made *comparison, t *cellSet, m metric, headline bool, groups map[string]int) (map[string]pairedBuilds, []Check) {
	all, o := b.all, b.options
	references, baselines := []string{t.baseline.ID}, t.ids()[:t.baselines()]
	baseline := typical(m, baselines, all)
	paired := map[string]pairedBuilds{}
	var checks []Check
	hold := func(cell result.Cell, list *[]*contrast) contrast {
		c, pairs, check := t.contrast(cell, references, baseline, m, all, o)
		paired[cell.ID] = pairs
		if check != nil {
			checks = append(checks, *check)
			return c
		}
		c.delta.Headline, c.of = headline, t
		*list = append(*list, &c)
		return c
	}
	if t.control != nil {
		null := hold(*t.control, &made.controls)
		if !o.Unpaired {
			made.nulls[nullCheckOf(t, m)] = null.estimate
		}
		references = append(references, t.control.ID)
	}
	for _, cell := range t.cells {
		if groups != nil { // it has a baseline of its own, which may differ from others'
			baseline = typical(m, baselines, t.of(cell.ID, groups, all))
		}
		hold(cell, &made.networks)
	}
	return paired, checks
}

// metrics are those that the table's trials hold, the headline first.
func (t cellSet) metrics(all []batch, o Options) []metric {
	trials := t.summaries(all)
	var held []metric
	for _, m := range metrics() {
		if m.holds(trials) {
			m.relative = t.relative[m.name+m.unit]
			held = append(held, m)
		}
	}
	wanted := o.Headlines[t.setting.Workload]
	if i := slices.IndexFunc(held, func(m metric) bool { return m.name == wanted }); i > 0 {
		m := held[i]
		held = slices.Insert(slices.Delete(held, i, i+1), 0, m)
	}
	if len(held) == 0 {
		held = metrics()[:1] // nothing was measured: going on with any metric gives the reasons
	}
	return held
}

// contrast holds one cell against others in one metric, of which the baseline's typical value is given, and returns what was paired for
// it. The check is not nil if there was nothing to compare.
func (t cellSet) contrast(cell result.Cell, others []string, baseline float64, m metric, all []batch, o Options) (contrast, pairedBuilds, *Check) {
	pair := pairBuilds
	inTime := m.unit == "ns" && !m.linear && !o.unwritten && !o.Unpaired
	if inTime {
		pair = pairInTime
	}
	p := pair(m, cell.ID, others, all)
	e := o.compare(p.builds, o.stats(m))
	if o.Unpaired {
		e = stats.Unpaired(e, figures(m, []string{cell.ID}, all), figures(m, others, all), o.stats(m))
	}
	if e.Builds == 0 {
		return contrast{metric: m, estimate: e}, p, unmeasured(cell, m, p.excluded)
	}
	d := result.Delta{
		Cell: cell.ID, Network: cell.Network, Baseline: t.baseline.Network, Setting: cell.Setting(),
		Path: cell.Path, Metric: m.name, Unit: m.unit, Better: m.better,
		BaselineValue: baseline, Judgement: result.Judgement{Blocks: e.Builds, Rounds: e.Rounds, Excluded: p.excluded},
	}
	if d.Across = t.across(cell, m); !m.ofBursts() || d.Across != nil {
		d.Rounds = 0 // one figure for each build: there are no rounds in it
	}
	fill(&d, m, e)
	var added stats.Estimate
	if inTime {
		added = o.locate(p.added, o.stats(*p.seconds))
		addTime(&d, added)
	}
	d.Bound = boundOf(cell.ID, all)
	if warning := failedShare(cell.ID, all); warning != "" {
		d.Warnings = append(d.Warnings, warning)
	}
	return contrast{delta: d, metric: m, estimate: e, time: added, batches: p.batches}, p, nil
}

// fill writes an estimate into a delta: as ratio, and as value and difference at the baseline's value.
func fill(d *result.Delta, m metric, e stats.Estimate) {
	d.Difference = differenceAt(d.BaselineValue, m, e.Center)
	d.Value = d.BaselineValue + d.Difference
	if !m.linear {
		d.Ratio = math.Exp(e.Center)
	}
	if e.HasInterval {
		fillInterval(d, m, e)
	} else {
		d.Need = e.Need
	}
	if m.ofBursts() {
		d.Variance = &result.Variance{
			Builds: math.Sqrt(e.Variance.Builds), Rounds: math.Sqrt(e.Variance.Rounds), Bursts: math.Sqrt(e.Variance.Bursts),
		}
	}
	for _, w := range e.Warnings {
		d.Warnings = append(d.Warnings, w.Error())
	}
}

// fillInterval writes an estimate's interval and p into a delta.
func fillInterval(d *result.Delta, m metric, e stats.Estimate) {
	d.DifferenceLow, d.DifferenceHigh = finite(differenceAt(d.BaselineValue, m, e.Low)), finite(differenceAt(d.BaselineValue, m, e.High))
	if !m.linear {
		d.RatioLow, d.RatioHigh = finite(math.Exp(e.Low)), finite(math.Exp(e.High))
	}
	d.P = finite(e.P)
}

// differenceAt is a place on the scale of comparison as a difference from the baseline's value.
func differenceAt(baseline float64, m metric, x float64) float64 {
	if m.linear {
		return x
	}
	return baseline * math.Expm1(x)
}

// addTime writes the paired difference in time into a delta. It has an interval of its own: the ratio's, scaled by one point of the
// baseline, would leave out that the baseline too is only known so well.
func addTime(d *result.Delta, e stats.Estimate) {
	if e.Builds == 0 {
		return
	}
	d.Difference, d.DifferenceLow, d.DifferenceHigh = e.Center*second, nil, nil
	d.Value = d.BaselineValue + d.Difference
	if e.HasInterval {
		d.DifferenceLow, d.DifferenceHigh = finite(e.Low*second), finite(e.High*second)
	}
}

// finite is nil for what JSON can't hold.
func finite(x float64) *float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return &x
}

// judged corrects the p values over each family and gives the verdicts.
func judged(contrasts []*contrast, o Options) []result.Delta {
	families := map[string][]int{}
	for i, c := range contrasts {
		family := c.metric.name
		if c.delta.Headline {
			family = "headline"
		}
		families[family] = append(families[family], i)
	}
	deltas := make([]result.Delta, len(contrasts))
	for _, members := range families {
		p := gather.Each(members, func(i int) float64 { return contrasts[i].judgedBy().P })
		for k, adjusted := range o.family(p) {
			deltas[members[k]] = contrasts[members[k]].judge(adjusted, len(members), o)
		}
	}
	return deltas
}

// judge completes the delta, one of a family, by its verdict.
func (c contrast) judge(adjusted float64, family int, o Options) result.Delta {
	d, options, e := c.delta, o.stats(c.metric), c.judgedBy()
	if e.HasInterval {
		d.PAdjusted = finite(adjusted)
	}
	verdict := stats.Judge(e, adjusted, c.floor, stats.Better(d.Better), options)
	if verdict == stats.Same && o.busy > 0 {
		verdict = stats.Unresolved
	}
	d.Verdict = string(verdict)
	if verdict == stats.Unresolved && e.HasInterval {
		d.Need = stats.Needed(e, family, c.floor, options)
	}
	return d
}
