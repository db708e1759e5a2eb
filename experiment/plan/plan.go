// Package plan decides what is measured when: it expands a study into cells, fits them into a time budget, orders them
// within rounds, and says after each round what comes next. It is pure: it has no clock, and time is handed to it.
package plan

import (
	"time"

	"netdelta/experiment/study"
	"netdelta/result"
)

// Numbers that the scheduler works with when a study does not say otherwise.
const (
	// MinBuilds is the least number of builds from which an interval can be had.
	MinBuilds = 6
	// MinRounds is the least number of rounds in a build that is worth setting it up.
	MinRounds = 10
)

// Costs says how long the parts of a run take. Estimates will do at first: the scheduler learns from what it is told.
type Costs struct {
	// Start is spent once, before the first build.
	Start time.Duration
	// Build is spent on each build, whatever is in it.
	Build time.Duration
	// Cell is spent on each cell of each build: its networks, agents and connections.
	Cell time.Duration
	// Burst is spent on each cell in each round: warm-up, the burst itself, and the exchange with the agents.
	Burst time.Duration
	// Cells has the burst costs of cells that differ from Burst, by their IDs.
	Cells map[string]time.Duration
	// Finish is spent once, after the last build.
	Finish time.Duration
}

func (c Costs) burst(cell result.Cell) time.Duration {
	if d, ok := c.Cells[cell.ID]; ok {
		return d
	}
	return c.Burst
}

// Rules are what the scheduler has to keep to.
type Rules struct {
	// Budget is how long the run may take, from its start.
	Budget time.Duration
	// Builds is how many builds the budget is divided among at first.
	Builds int
	// MinBuilds is how many builds each cell takes part in before it can be left out.
	MinBuilds int
	// Rounds is the number of rounds in each build; zero takes as many as fit.
	Rounds int
	// MinRounds is the least number of rounds in a build; less is not worth the set-up.
	MinRounds int
	// OnePass says that a build has one round because of how is measured, not because somebody asked for so many: a run may then
	// leave out what turns out not to fit, as one whose rounds follow from the budget.
	OnePass bool
	// MaxBuilds ends the run after so many builds though time is left; zero does not.
	MaxBuilds int
	// Apart lists networks that can't stand beside those of another entry, each with all that can stand beside it: a build then
	// has the networks of one entry only, and the baseline. The numbers of builds are those of each entry. Without it all
	// networks stand side by side.
	Apart [][]string
	// Ground is what takes its time, in words: "the cluster"; "" is this machine.
	Ground string
	// Seed is what the order of the entries of Apart is drawn from.
	Seed uint64
}

// RulesOf takes the rules from a study's design. Blocks, where they are given, are the number of builds at which the run ends.
func RulesOf(d study.Design) Rules {
	r := Rules{Budget: d.TimeBudget, Builds: d.Builds, MinBuilds: min(MinBuilds, d.Builds), Rounds: d.Rounds, MinRounds: MinRounds, Seed: d.Seed}
	if d.Rounds > 0 {
		r.MinRounds = d.Rounds
	}
	if d.Blocks > 0 {
		r.Builds, r.MaxBuilds, r.MinBuilds = d.Blocks, d.Blocks, min(MinBuilds, d.Blocks)
	}
	return r
}
