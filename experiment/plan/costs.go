package plan

import (
	"time"

	"netdelta/result"
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
}

func (c Costs) burst(cell result.Cell) time.Duration {
	if d, ok := c.Cells[cell.ID]; ok {
		return d
	}
	return c.Burst
}

// learnedCosts are the estimates at first, then what was measured. A first measurement replaces the estimate, later ones move it by a
// part, so that one slow round does not upset the plan.
type learnedCosts struct {
	fixed, perCell time.Duration // of a build's set-up
	collect        time.Duration
	burst          map[string]time.Duration // by cell
	measured       map[string]bool
	setups, ends   int
}

// share is the weight of a new measurement.
const share = 0.25

func newLearnedCosts(cells []result.Cell, costs Costs) *learnedCosts {
	l := &learnedCosts{
		fixed: costs.Build, perCell: costs.Cell, burst: map[string]time.Duration{}, measured: map[string]bool{},
	}
	for _, c := range cells {
		l.burst[c.ID] = costs.burst(c)
	}
	return l
}

// round is the cost of a round of these cells.
func (l *learnedCosts) round(cells []result.Cell) time.Duration {
	var sum time.Duration
	for _, c := range cells {
		sum += l.burst[c.ID]
	}
	return sum
}

// setup is the cost of setting up n cells.
func (l *learnedCosts) setup(n int) time.Duration { return l.fixed + time.Duration(n)*l.perCell }

// once is what a build of n cells costs in addition to its rounds.
func (l *learnedCosts) once(n int) time.Duration { return l.setup(n) + l.collect }

func (l *learnedCosts) learnSetup(n int, took time.Duration) {
	expected := l.setup(n)
	if expected <= 0 {
		l.fixed = took
	} else {
		factor := float64(took) / float64(expected)
		if l.setups > 0 {
			factor = 1 + share*(factor-1)
		}
		l.fixed, l.perCell = scale(l.fixed, factor), scale(l.perCell, factor)
	}
	l.setups++
}

func (l *learnedCosts) learnRound(cells []result.Cell, took time.Duration, bursts []time.Duration) {
	if len(bursts) != len(cells) {
		bursts = make([]time.Duration, len(cells))
		for i, c := range cells {
			bursts[i] = l.burst[c.ID]
		}
	}
	var sum time.Duration
	for _, b := range bursts {
		sum += b
	}
	for i, c := range cells {
		// What the round took in addition to its bursts is divided in proportion to them.
		cost := took / time.Duration(len(cells))
		if sum > 0 {
			cost = scale(took, float64(bursts[i])/float64(sum))
		}
		if l.measured[c.ID] {
			cost = l.burst[c.ID] + scale(cost-l.burst[c.ID], share)
		}
		l.burst[c.ID], l.measured[c.ID] = max(cost, 0), true
	}
}

func (l *learnedCosts) learnCollect(took time.Duration) {
	if l.ends > 0 {
		took = l.collect + scale(took-l.collect, share)
	}
	l.collect = max(took, 0)
	l.ends++
}

func scale(d time.Duration, factor float64) time.Duration {
	return time.Duration(float64(d) * factor)
}
