package insight

import (
	"cmp"
	"slices"

	"netdelta/result"
	"netdelta/stats"
)

// effects hold each network under each level of each factor against the same network under the factor's first level,
// everything else being the same, in each metric that was measured, the headline first. Bursts are paired round by round
// within builds, and builds are the replications, as for deltas; the baseline at a first level stands there with its A/A control. A
// verdict takes what the null checks of both settings leave possible for its noise floor. The p values of all headlines are
// corrected as one family, and so is each other metric: effects and deltas are separate families.
func (b *basis) effects() []result.Effect {
	steps, contrasts := b.steps()
	all := make([]result.Effect, len(steps))
	for i, d := range judged(contrasts, b.options) {
		all[i] = steps[i].effect(d)
	}
	return all
}

// step is a network from one level of a factor to another.
type step struct {
	factor   string
	from, to *cellSet
	// cell is at the level of to, references are at the level of from: the network's cell, or the baseline and its A/A control.
	cell       result.Cell
	references []string
}

// effect writes down the delta of the step.
func (s step) effect(d result.Delta) result.Effect {
	return result.Effect{
		Cell: s.cell.ID, Reference: s.references[0], Network: d.Network, Setting: d.Setting,
		Path: d.Path, Factor: s.factor, From: s.from.setting.Params.Level(s.factor), To: s.to.setting.Params.Level(s.factor),
		Metric: d.Metric, Headline: d.Headline, Unit: d.Unit, Better: d.Better, FromValue: d.BaselineValue, Value: d.Value,
		Judgement: d.Judgement, Warnings: d.Warnings, Across: d.Across,
	}
}

// steps makes the contrasts of all steps, in the order of steps and within it of metrics: a step for each contrast.
func (b *basis) steps() (made []step, contrasts []*contrast) {
	all := steps(b.sets)
	parts := make([][]*contrast, len(all))
	inParallel(len(all), func(i int) { parts[i] = b.compareStep(all[i]) })
	for i, s := range all {
		for _, c := range parts[i] {
			c.floor = max(b.floors.of(s.from, c.metric), b.floors.of(s.to, c.metric))
			made, contrasts = append(made, s), append(contrasts, c)
		}
	}
	return made, contrasts
}

// compareStep makes the contrasts of a step. A step of which nothing could be paired has no effect: the checks
// of its deltas say why.
func (b *basis) compareStep(s step) []*contrast {
	var made []*contrast
	for i, m := range b.metrics[s.to.at] {
		if b.options.HeadlinesOnly && i > 0 {
			break
		}
		if !slices.ContainsFunc(b.metrics[s.from.at], func(other metric) bool { return other.name == m.name && other.unit == m.unit }) {
			continue
		}
		reference := cellSet{baseline: &result.Cell{ID: s.references[0], Network: s.cell.Network, State: s.from.stateOf(s.references[0])}}
		b.remembering(m, func(m metric) {
			c, _, missing := reference.contrast(s.cell, s.references, typical(m, s.references, b.all), m, b.all, b.options)
			if c.delta.Headline = i == 0; missing == nil {
				made = append(made, &c)
			}
		})
	}
	return made
}

// steps are those from the first level of each factor to each other one, where all else is the same: factor by factor, and
// of each in the order of settings and of their cells.
func steps(cellSets []cellSet) []step {
	var all []step
	for _, factor := range result.Factors() {
		if factor == "cpu" {
			continue // it makes regimes, of which neither is an effect of the other
		}
		first := map[result.Setting]*cellSet{}
		for i := range cellSets {
			to := &cellSets[i]
			if to.baseline == nil {
				continue
			}
			open := to.setting
			open.Params = open.Params.Without(factor)
			from := first[open]
			if from == nil {
				first[open] = to
				continue
			}
			all = append(all, between(factor, from, to)...)
		}
	}
	return all
}

// between are the steps from one table to another of those networks that both have.
func between(factor string, from, to *cellSet) []step {
	references := []string{from.baseline.ID}
	if from.control != nil {
		references = append(references, from.control.ID)
	}
	all := []step{{factor, from, to, *to.baseline, references}}
	for _, cell := range to.cells {
		i := slices.IndexFunc(from.cells, func(c result.Cell) bool { return c.Network == cell.Network && c.Path == cell.Path })
		if i >= 0 {
			all = append(all, step{factor, from, to, cell, []string{from.cells[i].ID}})
		}
	}
	return all
}

// openEffects are the cells of headlines' effects that are not known well enough to stop measuring them; measured says whether
// there are any effects.
func (b *basis) openEffects() (open map[string]bool, measured bool) {
	made, contrasts := b.steps()
	open = map[string]bool{}
	for i, d := range judged(contrasts, b.options) {
		options := b.options.stats(contrasts[i].metric)
		if !stats.Resolved(contrasts[i].estimate, len(made), contrasts[i].floor, options) || waits(d, options) {
			open[d.Cell], open[made[i].references[0]] = true, true
		}
	}
	return open, len(made) > 0
}

// EffectTable is what one step of a factor does to each network in one setting.
type EffectTable struct {
	Factor, From, To string
	// Setting is the one at the level To; Open is the same without the factor.
	Setting, Open result.Setting
	// Deltas are the effects as deltas against the level From: the headline first, the cheapest network first.
	Deltas []result.Delta
	Margin float64
}

// EffectTables sorts a run's effects: factor by factor, in the order of the run's settings. A table without any effect in
// its headline metric is left out.
func EffectTables(run result.Run) []EffectTable {
	type key struct {
		factor, from, to string
		setting          result.Setting
	}
	var all []EffectTable
	for k, effects := range By(run.Effects, func(e result.Effect) key { return key{e.Factor, e.From, e.To, e.Setting} }) {
		t := EffectTable{Factor: k.factor, From: k.from, To: k.to, Setting: k.setting, Open: k.setting, Margin: run.Margin}
		t.Open.Params = t.Open.Params.Without(k.factor)
		for _, e := range effects {
			t.Deltas = append(t.Deltas, AsDelta(e))
		}
		if len(t.Headlines()) > 0 {
			all = append(all, t)
		}
	}
	for _, t := range all {
		slices.SortStableFunc(t.Deltas, func(a, b result.Delta) int {
			switch {
			case a.Headline == b.Headline:
				return cmp.Compare(Cost(a), Cost(b))
			case a.Headline:
				return -1
			}
			return 1
		})
	}
	return all
}

// AsDelta is an effect as a delta whose baseline is the level that it is compared with.
func AsDelta(e result.Effect) result.Delta {
	return result.Delta{
		Cell: e.Cell, Network: e.Network, Baseline: e.From, Setting: e.Setting, Path: e.Path,
		Metric: e.Metric, Headline: e.Headline, Unit: e.Unit, Better: e.Better, BaselineValue: e.FromValue, Value: e.Value,
		Judgement: e.Judgement, Warnings: e.Warnings, Across: e.Across,
	}
}

// Headlines are the deltas of the headline metric.
func (t EffectTable) Headlines() []result.Delta {
	return slices.DeleteFunc(slices.Clone(t.Deltas), func(d result.Delta) bool { return !d.Headline })
}
