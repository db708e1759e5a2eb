package insight

import (
	"math"
	"slices"
	"time"

	"netdelta/stats"
)

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
