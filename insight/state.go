package insight

import (
	"math"
	"slices"
	"time"

	"netdelta/stats"
)

// StateSplit is a network against its baseline, as ratios, in the fast half and in the slow half of the run's rounds.
type StateSplit struct {
	Network, Baseline string
	Fast, Slow        float64
}

// stateRounds is how many rounds of either half a build has to have for it to say what the state of the machine does.
const stateRounds = 3

// stateChecks look in a setting for networks whose delta is one while the machine is fast and another while it is slow. What
// the machine's state is in a round, the A/A control says for the delta against the baseline, and the baseline for the delta against the
// control: the noise of a burst is never on both sides, which would make a delta look smaller wherever its own baseline was slow by
// chance. They err in at most one of a hundred runs.
func (b *basis) stateChecks(t *cellSet, m metric, paired map[string]pairedBuilds) []Check {
	if b.across || b.options.Exact || b.options.Unpaired || !m.ofBursts() || m.linear || t.control == nil {
		return nil
	}
	var checks []Check
	least := unevenLeast * math.Log1p(b.options.margin())
	baseline, control := newMoments(&m, t.baseline.ID, b.all), newMoments(&m, t.control.ID, b.all)
	for _, cell := range t.cells {
		if s, differs := splitByState(paired[cell.ID], cell.ID, b.all, baseline, control, b.networks, least); differs {
			s.Network, s.Baseline = cell.Network, t.baseline.Network
			checks = append(checks, Check{Trial: cell.ID, Name: CheckState, State: &s})
		}
	}
	return checks
}

// moments tell by the bursts of one cell when the machine was slow.
type moments struct {
	builds  []slowness // by batch
	typical float64
}

// slowness has a value for each burst of a trial, on the scale of comparison; the larger, the slower. It is NaN where the burst does not count.
type slowness struct {
	*readings // nil where none counts
	of        []float64
}

func newMoments(m *metric, cell string, all []batch) moments {
	known := moments{builds: make([]slowness, len(all))}
	var list []float64
	for i, s := range all {
		trial := s.good(cell)
		if trial == nil {
			continue
		}
		b := slowness{m.read(trial), m.floats(len(trial.rounds))}
		known.builds[i] = b
		for place, scaled := range b.scaled {
			if b.why(place) != "" {
				b.of[place] = math.NaN()
				continue
			}
			b.of[place] = scaled
			if m.better == string(stats.HigherBetter) {
				b.of[place] = -scaled
			}
			list = append(list, b.of[place])
		}
	}
	known.typical = stats.Median(list)
	return known
}

// splitByState takes the deltas of each build's fast and slow rounds apart, and says whether they differ.
func splitByState(p pairedBuilds, cell string, all []batch, baseline, control moments, tests int, least float64) (s StateSplit, differs bool) {
	var gaps, fast, slow []float64
	for k, b := range p.builds {
		at := p.batches[k]
		if baseline.builds[at].readings == nil || control.builds[at].readings == nil {
			continue
		}
		rounds := roundsOf(all[at].good(cell), p.rows[k])
		fastA, slowA, okA := control.halves(at, rounds, b, -1)
		fastB, slowB, okB := baseline.halves(at, rounds, b, +1)
		if okA && okB {
			fast, slow = append(fast, (fastA+fastB)/2), append(slow, (slowA+slowB)/2)
			gaps = append(gaps, slow[len(slow)-1]-fast[len(fast)-1])
		}
	}
	if len(gaps) < stats.DefaultMinBuilds || !stats.Systematic(gaps, tests, least) {
		return s, false
	}
	return StateSplit{Fast: math.Exp(stats.Mean(fast)), Slow: math.Exp(stats.Mean(slow))}, true
}

// roundsOf are the rounds of some rows of a trial's bursts.
func roundsOf(s *summary, rows []int) []int {
	rounds := make([]int, len(rows))
	for i, row := range rows {
		rounds[i] = s.rounds[row]
	}
	return rounds
}

// halves are the typical deltas of a build while the machine was fast and while it was slow: against the baseline where side is -1, and
// against its A/A control where it is +1.
func (known moments) halves(batch int, rounds []int, b stats.Build, side float64) (fast, slow float64, ok bool) {
	var few [2][40]float64 // most have no more: they take no memory then
	halves := [2][]float64{few[0][:0], few[1][:0]}
	machine := known.builds[batch]
	place := 0
	for i, round := range rounds {
		var measured bool
		place, measured = machine.seek(round, place)
		if !measured || math.IsNaN(machine.of[place]) {
			continue
		}
		half := 0
		if machine.of[place] > known.typical {
			half = 1
		}
		halves[half] = append(halves[half], b.Deltas[i]+side*b.HalfGaps[i])
	}
	return stats.Median(halves[0]), stats.Median(halves[1]), min(len(halves[0]), len(halves[1])) >= stateRounds
}

// LevelStep is a change of level in the middle of a trial, against the baseline of the same rounds.
type LevelStep struct {
	Metric string
	// Ratio is the level after against the level before; 0.2 is a fifth.
	Ratio float64
	// After and Before are the rounds between which it changed, At is the time from the start of the run.
	After, Before int
	At            time.Duration
	// Baseline says that it is the baseline and its A/A control that moved apart.
	Baseline bool
}

// stepChecks looks for level steps in the trials of a table, by its headline, as it was paired cell by cell. A step of the baseline is
// one of its own, and not one of each network.
func (t cellSet) stepChecks(m metric, paired map[string]pairedBuilds, all []batch) []Check {
	if !m.ofBursts() || m.linear {
		return nil
	}
	var checks []Check
	moved := map[int][]int{} // rounds at which the baseline moved, by batch
	if t.control != nil {
		for batch, c := range steppedBuilds(m, t.control.ID, paired[t.control.ID], all) {
			c.Step.Baseline = true
			moved[batch] = append(moved[batch], c.Step.Before)
			checks = append(checks, c)
		}
	}
	for _, cell := range t.cells {
		for batch, c := range steppedBuilds(m, cell.ID, paired[cell.ID], all) {
			if !near(moved[batch], c.Step.Before) {
				checks = append(checks, c)
			}
		}
	}
	return checks
}

// steppedBuilds are the level steps of a cell, by batch.
func steppedBuilds(m metric, cell string, p pairedBuilds, all []batch) map[int]Check {
	found := map[int]Check{}
	for i, build := range p.builds {
		step, ok := stats.FindStep(build.Deltas, len(all[p.batches[i]]))
		if !ok {
			continue
		}
		trial := all[p.batches[i]][cell]
		before, after := p.rows[i][step.At], p.rows[i][step.At-1]
		found[p.batches[i]] = Check{Trial: trial.id(), Name: CheckStep, Step: &LevelStep{
			Metric: m.name, Ratio: math.Exp(step.Change), After: trial.rounds[after], Before: trial.rounds[before],
			At: time.Duration(trial.starts[before]),
		}}
	}
	return found
}

// near tells whether a round is one of some, or next to one of them.
func near(rounds []int, round int) bool {
	return slices.ContainsFunc(rounds, func(r int) bool { return r-round <= 1 && round-r <= 1 })
}
