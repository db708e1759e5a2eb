package insight

import (
	"slices"

	"netdelta/result"
	"netdelta/stats"
)

// Effects hold each network under each level of each factor against the same network under the factor's first level,
// everything else being the same, in each metric that was measured, the headline first. Bursts are paired round by round
// within builds, and builds are the replications, as for Deltas; the baseline at a first level stands there with its twin. A
// verdict takes what the null checks of both settings leave possible for its noise floor. The p values of all headlines are
// corrected as one family, and those of each other metric as one: whatever a run has of deltas is a family of its own.
func Effects(cells []result.Cell, trials []result.Trial, o Options) []result.Effect {
	made := effectsOf(cells, sittings(trials), o)
	contrasts := make([]contrast, len(made))
	for i, m := range made {
		contrasts[i] = m.contrast
	}
	all := make([]result.Effect, len(made))
	for i, d := range judged(contrasts, o) {
		all[i] = made[i].step.effect(d)
	}
	return all
}

// step is a network from one level of a factor to another.
type step struct {
	factor   string
	from, to *table
	// cell is at the level of to, references are at that of from: the network's cell, or the baseline and its twin.
	cell       result.Cell
	references []string
}

// effect writes what a contrast of the step came to.
func (s step) effect(d result.Delta) result.Effect {
	return result.Effect{
		Cell: s.cell.ID, Reference: s.references[0], Network: d.Network, Workload: d.Workload, Params: d.Params, Placement: d.Placement,
		Path: d.Path, Factor: s.factor, From: s.from.setting.Params.Level(s.factor), To: s.to.setting.Params.Level(s.factor),
		Metric: d.Metric, Headline: d.Headline, Unit: d.Unit, Better: d.Better, FromValue: d.BaselineValue, Value: d.Value,
		Ratio: d.Ratio, RatioLow: d.RatioLow, RatioHigh: d.RatioHigh,
		Difference: d.Difference, DifferenceLow: d.DifferenceLow, DifferenceHigh: d.DifferenceHigh, P: d.P, PAdjusted: d.PAdjusted,
		Blocks: d.Blocks, Rounds: d.Rounds, Need: d.Need, Verdict: d.Verdict, Excluded: d.Excluded, Warnings: d.Warnings,
	}
}

// stepContrast is a step in one metric.
type stepContrast struct {
	step     step
	contrast contrast
}

// effectsOf makes the contrasts of all steps, in the order of steps and within it of metrics.
func effectsOf(cells []result.Cell, all []sitting, o Options) []stepContrast {
	tables := tables(cells)
	held := map[*table][]metric{}
	floors := map[*table]map[string]float64{}
	var made []stepContrast
	for _, s := range steps(tables) {
		for _, t := range []*table{s.from, s.to} {
			if held[t] == nil {
				held[t], floors[t] = t.metrics(all, o), map[string]float64{}
			}
		}
		for i, m := range held[s.to] {
			if o.HeadlinesOnly && i > 0 {
				break
			}
			if !slices.ContainsFunc(held[s.from], func(other metric) bool { return other.name == m.name && other.unit == m.unit }) {
				continue
			}
			// A step of which nothing could be paired has no effect: the checks of its deltas say why.
			if c, ok := s.compare(m, i == 0, all, o); ok {
				c.floor = max(s.from.floor(m, floors[s.from], all, o), s.to.floor(m, floors[s.to], all, o))
				made = append(made, stepContrast{s, c})
			}
		}
	}
	return made
}

// compare pairs a step in one metric; false if there was nothing to pair.
func (s step) compare(m metric, headline bool, all []sitting, o Options) (contrast, bool) {
	reference := table{baseline: &result.Cell{ID: s.references[0], Network: s.cell.Network}}
	c, missing := reference.contrast(s.cell, s.references, typical(m, s.references, all), m, all, o)
	c.delta.Headline = headline
	return c, missing == nil
}

// floor is what the table's null check leaves possible; known are those of its metrics that were asked for before.
func (t *table) floor(m metric, known map[string]float64, all []sitting, o Options) float64 {
	if t.twin == nil {
		return 0
	}
	key := m.name + " " + m.unit
	floor, ok := known[key]
	if !ok {
		if p := pair(m, t.twin.ID, []string{t.baseline.ID}, all); len(p.builds) > 0 {
			floor = stats.NoiseFloor(stats.Compare(p.builds, o.stats(m)))
		}
		known[key] = floor
	}
	return floor
}

// steps are those from the first level of each factor to each other one, where all else is the same: factor by factor, and
// of each in the order of settings and of their cells.
func steps(tables []table) []step {
	var all []step
	for _, factor := range result.Factors() {
		first := map[result.Setting]*table{}
		for i := range tables {
			to := &tables[i]
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
func between(factor string, from, to *table) []step {
	references := []string{from.baseline.ID}
	if from.twin != nil {
		references = append(references, from.twin.ID)
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
func openEffects(cells []result.Cell, all []sitting, o Options) (open map[string]bool, measured bool) {
	made := effectsOf(cells, all, o)
	contrasts := make([]contrast, len(made))
	for i, m := range made {
		contrasts[i] = m.contrast
	}
	open = map[string]bool{}
	for i, d := range judged(contrasts, o) {
		options := o.stats(made[i].contrast.metric)
		if !stats.Resolved(made[i].contrast.estimate, len(made), options) || waits(d, options) {
			open[d.Cell], open[made[i].step.references[0]] = true, true
		}
	}
	return open, len(made) > 0
}
