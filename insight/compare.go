package insight

import (
	"cmp"
	"math"
	"slices"

	"netdelta/internal/gather"
	"netdelta/result"
	"netdelta/stats"
)

// Measured is a run with its trials, to be compared with another.
type Measured struct {
	Run    result.Run
	Trials *Summaries
	// Notes are what the reader must know of how the run was read, such as a line that was torn.
	Notes []string
}

// Comparing says how two runs are compared. The zero value judges each workload's headline within the wider of the runs' own
// margins.
type Comparing struct {
	// Margin within which a change counts as none: 0.02 is 2%, or two points of loss. Zero takes the wider of the runs' own,
	// and LossMargin for loss.
	Margin float64
	// Metric is judged in place of the headlines, "" for the headlines.
	Metric string
	// All compares every metric that both runs have; only the headlines, or Metric, are judged.
	All bool
}

// delta is a contrast with its verdict.
type delta struct {
	contrast contrast
	judged   result.Delta
}

// identity names a delta across runs: what two deltas must have in common to be the same one. Parameters are as they were meant:
// a default that is written out is the default.
type identity struct {
	network, baseline, path, metric string
	setting                         result.Setting
}

func (d delta) identity() identity {
	s := d.judged.Setting
	s.Params = meant(s.Params)
	return identity{d.judged.Network, d.judged.Baseline, cmp.Or(d.judged.Path, "pod"), d.judged.Metric, s}
}

// meant are the parameters with the defaults of result.Params written out.
func meant(p result.Params) result.Params {
	p.Family = cmp.Or(p.Family, result.IPv4)
	p.CPU = cmp.Or(p.CPU, "same")
	p.CongestionControl = cmp.Or(p.CongestionControl, "cubic")
	return p
}

// RunChanges are what changed between two runs, with what has still to be put in words.
type RunChanges struct {
	result.Comparison
	// Doubts say, for each change, why it is unresolved although its whole interval lies beyond the margin. Absences say, for each
	// unpaired delta, why the other run does not have it.
	Doubts   []Doubt
	Absences []AbsentDelta
}

// Doubt is why a change is unresolved although its whole interval lies beyond the margin. The zero Doubt is none.
type Doubt int

// The doubts.
const (
	DoubtNullCheck Doubt = iota + 1 // a null check has too few builds to tell what a run may make of itself
	DoubtFloor                      // the change is no larger than what the null checks leave possible
	DoubtChance                     // among so many changes one may look like this by chance
)

// AbsentDelta is why a run does not have a delta: its cell is unsupported or skipped, its baseline is another one, it was not measured,
// or (NoCell) it is not part of the run.
type AbsentDelta struct {
	Unsupported, Skipped, Baseline string
	NoCell                         bool
}

// Compare says what changed from one run to another: of each delta that both have, how far its ratio to the baseline of its
// own run moved, with an interval over the builds of both (stats.Between) and a verdict corrected by Holm over all that are
// judged. What the baselines measured is reported and never judged: it may be the machine.
func (j Judge) Compare(before, after Measured, o Comparing) RunChanges {
	c := RunChanges{Comparison: result.Comparison{
		Schema: result.Schema, Metric: o.Metric, Margin: o.Margin, LossMargin: cmp.Or(o.Margin, LossMargin),
		Confidence:  max(before.Run.Confidence, after.Run.Confidence),
		Differences: differences(before.Run, after.Run), Exact: before.Run.Exact != nil && after.Run.Exact != nil,
	}}
	c.Margin = cmp.Or(c.Margin, max(before.Run.Margin, after.Run.Margin))
	earlier, later := j.deltas(before, o), j.deltas(after, o)
	c.Old, c.New = compared(before.Run, earlier), compared(after.Run, later)
	pairs, lone := match(earlier, later)
	c.changes(pairs)
	c.unpaired(lone, before.Run, after.Run)
	c.Baselines = baselines(pairs)
	c.Verdict = overall(c.Changes)
	return c
}

// deltas are the deltas of a run that are to be compared, in the order of its cells.
func (j Judge) deltas(m Measured, o Comparing) []delta {
	options := j.options(m.Run)
	options.HeadlinesOnly = o.Metric == "" && !o.All
	if options.Repeating == nil && m.Run.Testbed == "lab" { // of a version that did not know what runs differ by
		options.Repeating = Repeating(MeasuredSpreads(), nil)
	}
	b := newBasis(m.Run.Cells, m.Trials, options)
	contrasts := b.compareAll().networks
	b.options.forAnotherRun(contrasts)
	var all []delta
	for i, d := range judged(contrasts, b.options) {
		if o.Metric != "" {
			d.Headline = d.Metric == o.Metric
		}
		if d.Headline || o.All {
			all = append(all, delta{*contrasts[i], d})
		}
	}
	return all
}

// compared names a run.
func compared(r result.Run, deltas []delta) result.ComparedRun {
	c := result.ComparedRun{
		Run: r.Run, Study: r.Study, Testbed: r.Testbed, Started: r.Started, Ended: r.Ended, Margin: r.Margin, Adaptive: r.Adaptive,
		OnNodes: r.Environment.Cluster != nil || len(r.Environment.Servers) > 0,
	}
	for _, d := range deltas {
		c.Builds = max(c.Builds, d.judged.Blocks)
	}
	return c
}

// match puts the deltas together that are the same one, in the order of the new run, and leaves those that are lone, the old
// run's first.
func match(earlier, later []delta) (pairs [][2]delta, lone [2][]delta) {
	had := map[identity]delta{}
	for _, d := range earlier {
		had[d.identity()] = d
	}
	met := map[identity]bool{}
	for _, d := range later {
		k := d.identity()
		if e, ok := had[k]; ok && !met[k] {
			pairs = append(pairs, [2]delta{e, d})
			met[k] = true
			continue
		}
		lone[1] = append(lone[1], d)
	}
	for _, d := range earlier {
		if !met[d.identity()] {
			lone[0] = append(lone[0], d)
		}
	}
	return pairs, lone
}

// changes estimates and judges all pairs. What is judged is one family, and so is each other metric.
func (c *RunChanges) changes(pairs [][2]delta) {
	all, estimates := make([]result.Change, len(pairs)), make([]stats.Change, len(pairs))
	c.Changes, c.Doubts = all, make([]Doubt, len(pairs))
	options, floors := make([]stats.Options, len(pairs)), make([]float64, len(pairs))
	sameMachine := !slices.ContainsFunc(c.Differences, func(d result.Difference) bool { return d.Group == GroupMachine || d.Group == GroupKernel })
	families := map[string][]int{}
	for i, p := range pairs {
		m := p[1].contrast.metric
		options[i] = Options{Confidence: c.Confidence, Sequential: c.Old.Adaptive || c.New.Adaptive}.stats(m)
		options[i].Margin = c.Margin
		if m.linear {
			options[i].Margin = c.LossMargin
		}
		var byTime bool
		estimates[i], byTime = changeBetween(p, sameMachine, c.Exact, options[i])
		floors[i] = stats.ChangeFloor(p[0].contrast.floor, p[1].contrast.floor)
		all[i] = change(p, estimates[i], floors[i])
		all[i].ByTime = byTime
		if !estimates[i].HasInterval {
			continue // it can make no claim, and must not weaken the others
		}
		family := m.name
		if all[i].Headline {
			family = "headline"
		}
		families[family] = append(families[family], i)
	}
	for i := range all {
		all[i].Verdict = string(stats.Unresolved)
		all[i].Need = stats.NeedForChange(estimates[i], options[i])
	}
	for _, members := range families {
		p := gather.Each(members, func(i int) float64 { return estimates[i].P })
		for k, adjusted := range stats.Holm(p) {
			i := members[k]
			verdict := stats.JudgeChange(estimates[i], adjusted, floors[i], stats.Better(all[i].Better), options[i])
			all[i].Verdict, all[i].PAdjusted = string(verdict), finite(adjusted)
			all[i].Findable = pairs[i][1].contrast.metric.size(stats.Findable(estimates[i], len(members), floors[i], options[i]))
			if verdict != stats.Unresolved {
				all[i].Need = 0
			} else {
				c.Doubts[i] = doubt(estimates[i], floors[i], options[i])
			}
		}
	}
}

// doubt is that about an unresolved change.
func doubt(e stats.Change, floor float64, o stats.Options) Doubt {
	margin := math.Log1p(o.Margin)
	switch {
	case e.Low <= margin && e.High >= -margin:
		return 0
	case math.IsInf(floor, 0):
		return DoubtNullCheck
	case math.Abs(e.Center) <= floor:
		return DoubtFloor
	}
	return DoubtChance
}

// change writes an estimate down.
func change(p [2]delta, e stats.Change, floor float64) result.Change {
	d, linear := p[1].judged, p[1].contrast.metric.linear
	c := result.Change{
		Network: d.Network, Baseline: d.Baseline, Setting: d.Setting, Path: d.Path,
		Metric: d.Metric, Headline: d.Headline, Unit: d.Unit, Better: d.Better, Old: side(p[0].judged), New: side(d),
	}
	if linear {
		c.Shift = e.Center
	} else {
		c.Change = math.Exp(e.Center)
	}
	if e.HasInterval {
		c.P = finite(e.P)
		if linear {
			c.ShiftLow, c.ShiftHigh = finite(e.Low), finite(e.High)
		} else {
			c.ChangeLow, c.ChangeHigh = finite(math.Exp(e.Low)), finite(math.Exp(e.High))
		}
	}
	if floor > 0 {
		c.Floor = finite(floor)
		if !linear {
			c.Floor = finite(math.Expm1(floor))
		}
	}
	for i, name := range []string{"the old run: ", "the new run: "} {
		for _, w := range p[i].judged.Warnings {
			c.Warnings = append(c.Warnings, name+w)
		}
	}
	return c
}

// side is a delta as one of the runs has it.
func side(d result.Delta) result.ComparedDelta {
	return result.ComparedDelta{
		Value: d.Value, BaselineValue: d.BaselineValue, Ratio: d.Ratio, Difference: d.Difference, Blocks: d.Blocks, Verdict: d.Verdict,
	}
}

// baselines are what the baselines of the settings with changes measured, in the metrics that are judged.
func baselines(pairs [][2]delta) []result.BaselineChange {
	type key struct {
		setting          result.Setting
		baseline, metric string
	}
	seen := map[key]bool{}
	var all []result.BaselineChange
	for _, p := range pairs {
		d := p[1].judged
		k := key{d.Setting, d.Baseline, d.Metric}
		if !d.Headline || seen[k] {
			continue
		}
		seen[k] = true
		all = append(all, result.BaselineChange{
			Baseline: d.Baseline, Setting: d.Setting, Metric: d.Metric, Unit: d.Unit,
			Old: p[0].judged.BaselineValue, New: d.BaselineValue,
		})
	}
	return all
}

// unpaired lists the deltas that one run has alone, and why the other does not have them.
func (c *RunChanges) unpaired(lone [2][]delta, before, after result.Run) {
	for i, in := range []string{"old", "new"} {
		other := [2]result.Run{after, before}[i]
		for _, d := range lone[i] {
			if !d.judged.Headline {
				continue
			}
			j := d.judged
			c.Unpaired = append(c.Unpaired, result.Unpaired{
				In: in, Network: j.Network, Baseline: j.Baseline, Setting: j.Setting,
				Path: j.Path, Metric: j.Metric,
			})
			c.Absences = append(c.Absences, absence(d, other))
		}
	}
}

// absence is why a run does not have a delta.
func absence(d delta, other result.Run) AbsentDelta {
	want := d.identity()
	inSetting := func(c result.Cell) bool {
		setting := c.Setting()
		setting.Params = meant(setting.Params)
		return setting == want.setting
	}
	baseline := want.baseline
	for _, c := range other.Cells {
		if c.Role == result.RoleBaseline && inSetting(c) {
			baseline = c.Network
		}
	}
	for _, c := range other.Cells {
		if c.Role != result.RoleCell || c.Network != want.network || cmp.Or(c.Path, "pod") != want.path || !inSetting(c) {
			continue
		}
		a := AbsentDelta{Unsupported: c.Unsupported, Skipped: c.Skipped}
		if baseline != want.baseline {
			a.Baseline = baseline
		}
		return a
	}
	return AbsentDelta{NoCell: true}
}

// Repeated is a delta that several runs have, with what they say of another run: on another day, or after another boot.
type Repeated struct {
	// Delta is as the last run has it.
	Delta result.Delta
	// Figures are the runs' own, in their order: ratios, or differences where Linear.
	Figures []float64
	Linear  bool
	// Prediction is on the scale of Figures. Enough says that there were runs enough for one.
	Prediction stats.Prediction
	Enough     bool
}

// Boots is how many boots runs were made in; 0 where some run does not say in which.
func Boots(runs []Measured) int {
	seen := map[string]bool{}
	for _, m := range runs {
		seen[m.Run.Environment.Boot] = true
	}
	if seen[""] {
		return 0
	}
	return len(seen)
}

// Repeat says what several runs say of another one: of each delta that at least two of them have, in the order of the last run.
func (j Judge) Repeat(runs []Measured, o Comparing) []Repeated {
	var order []identity
	figures, last := map[identity][]float64{}, map[identity]delta{}
	confidence := 0.0
	for i := len(runs) - 1; i >= 0; i-- {
		confidence = max(confidence, runs[i].Run.Confidence)
		for _, d := range j.deltas(runs[i], o) {
			k := d.identity()
			if _, known := last[k]; !known {
				order, last[k] = append(order, k), d
			}
			figures[k] = append([]float64{d.contrast.estimate.Center}, figures[k]...)
		}
	}
	var all []Repeated
	for _, k := range order {
		if len(figures[k]) < 2 {
			continue
		}
		m := last[k].contrast.metric
		r := Repeated{Delta: last[k].judged, Linear: m.linear}
		for _, x := range figures[k] {
			r.Figures = append(r.Figures, m.amount(x))
		}
		r.Prediction, r.Enough = stats.Predict(figures[k], stats.Options{Confidence: confidence})
		for _, x := range []*float64{&r.Prediction.Center, &r.Prediction.Low, &r.Prediction.High, &r.Prediction.NextLow, &r.Prediction.NextHigh} {
			*x = m.amount(*x)
		}
		all = append(all, r)
	}
	return all
}
