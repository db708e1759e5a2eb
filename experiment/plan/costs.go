// Package plan decides what is measured when: it expands a study into cells, fits them into a time budget, orders them
// within rounds, and says after each round what comes next. It is pure: it has no clock, and time is handed to it.
package plan

import (
	"math/rand/v2"
	"time"

	"netdelta/experiment/study"
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
	// Servers are what each build starts for cells, by their IDs, in addition to what every cell has.
	Servers map[string]Server
	// Once are what a run starts once, for all its builds, for cells by their IDs.
	Once map[string]Server
}

// Server is something that takes time to start. Cells whose servers have the same key share one.
type Server struct {
	Key   string
	Takes time.Duration
}

// started are the servers of cells, each once.
func started(servers map[string]Server, cells []result.Cell) map[string]time.Duration {
	if len(servers) == 0 {
		return nil
	}
	all := map[string]time.Duration{}
	for _, cell := range cells {
		if s, has := servers[cell.ID]; has {
			all[s.Key] = s.Takes
		}
	}
	return all
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
	Costs
	setups  map[string]float64 // what set-ups take in place of the estimate: by state, and by the key of a server
	collect time.Duration
	burst   map[string]time.Duration // by cell
	known   map[string]bool          // cells whose bursts are measured
	ends    int
}

// share is the weight of a new measurement.
const share = 0.25

func newLearnedCosts(cells []result.Cell, costs Costs) *learnedCosts {
	l := &learnedCosts{Costs: costs, setups: map[string]float64{}, burst: map[string]time.Duration{}, known: map[string]bool{}}
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

// setup is the cost of setting these cells up, which are of one state.
func (l *learnedCosts) setup(cells []result.Cell) (sum time.Duration) {
	for key, takes := range l.parts(cells) {
		sum += l.part(key, takes)
	}
	return sum
}

// parts are what a set-up of cells consists of, with the estimates: the networks in their state, and servers.
func (l *learnedCosts) parts(cells []result.Cell) map[string]time.Duration {
	all := map[string]time.Duration{stateOf(cells): l.Build + time.Duration(len(cells))*l.Cell}
	for key, takes := range started(l.Servers, cells) {
		all["server "+key] = takes
	}
	return all
}

func (l *learnedCosts) part(key string, estimate time.Duration) time.Duration {
	if factor, known := l.setups[key]; known {
		return scale(estimate, factor)
	}
	return estimate
}

// knows says whether a set-up of the cells' state is measured.
func (l *learnedCosts) knows(cells []result.Cell) bool {
	_, known := l.setups[stateOf(cells)]
	return known
}

// once is what a build of the cells costs in addition to its rounds.
func (l *learnedCosts) once(cells []result.Cell) time.Duration { return l.setup(cells) + l.collect }

// learnSetup learns from a set-up. What was not measured before has taken what the known parts have not; if there is none, all have taken
// their share.
func (l *learnedCosts) learnSetup(cells []result.Cell, took time.Duration) {
	if l.setup(cells) <= 0 { // there was no estimate
		l.Build, l.setups = took, map[string]float64{}
	}
	parts := l.parts(cells)
	var known, fresh time.Duration
	for key, estimate := range parts {
		if _, is := l.setups[key]; is {
			known += l.part(key, estimate)
		} else {
			fresh += estimate
		}
	}
	// What is known varies from build to build: a small rest says little.
	const least = 0.1
	first, later := max(least, float64(took-known)/float64(max(1, fresh))), 1+share*(float64(took)/float64(max(1, known))-1)
	if known == 0 {
		first = float64(took) / float64(max(1, fresh))
	}
	for key := range parts {
		if factor, is := l.setups[key]; !is {
			l.setups[key] = first
		} else if fresh == 0 {
			l.setups[key] = factor * later
		}
	}
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
		if l.known[c.ID] {
			cost = l.burst[c.ID] + scale(cost-l.burst[c.ID], share)
		}
		l.burst[c.ID], l.known[c.ID] = max(cost, 0), true
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

// Defaults of the scheduler.
const (
	// MinBuilds is the least number of builds that a run is planned for: large differences are known from three on, small ones are not.
	MinBuilds = 6
	// MinRounds is the least number of rounds in a build that are worth its set-up.
	MinRounds = 10
)

// Rules are the limits of a run.
type Rules struct {
	// Budget is how long the run may take, from its start.
	Budget time.Duration
	// Builds is the number of builds that the budget is divided among at first.
	Builds int
	// MinBuilds is the number of builds of each cell before it can be left out.
	MinBuilds int
	// Rounds is the number of rounds in each build; zero takes as many as fit.
	Rounds int
	// MinRounds is the least number of rounds in a build.
	MinRounds int
	// OnePass says that a build has one round because of the strategy, not because the study asks for so many: the run may then leave
	// out what turns out not to fit, like one whose rounds follow from the budget.
	OnePass bool
	// MaxBuilds ends the run after so many builds even if time is left; zero does not.
	MaxBuilds int
	// Ground names what a run is on: "the cluster"; "" is this machine.
	Ground string
	// Named says that the user named the workloads: each is measured in its first combination of parameters, if only in MinBuilds builds,
	// before the budget is spent on anything else.
	Named bool
	// Seed determines the order of the states.
	Seed uint64
	// Claimed are the IDs of the cells that the study's claims are judged by: loads with one of them are the last to be left out.
	Claimed map[string]bool
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

// Order is the order in which n cells are visited in a round: a permutation of 0 to n-1, the same for the same seed, build
// and round, and independent of all others.
func Order(seed uint64, build, round, n int) []int {
	return rand.New(rand.NewPCG(scramble(seed^scramble(uint64(build))), uint64(round))).Perm(n)
}

// scramble spreads neighbouring numbers over all 64 bits (the finalizer of splitmix64), so that a seed and a build never add
// up to the same as another seed and build.
func scramble(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
