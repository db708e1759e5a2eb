package plan

import (
	"slices"
	"time"

	"netdelta/result"
)

// StepKind says what comes next in a run.
type StepKind string

// The steps. A run is: build, rounds, collect; build, rounds, collect; ... end.
const (
	// StepBuild: set up the networks of Cells and their connections, then call Built.
	StepBuild StepKind = "build"
	// StepRound: run one burst in each of Cells in the order of Order(seed, Build, Round, len(Cells)), then call Measured.
	StepRound StepKind = "round"
	// StepCollect: the build is over. Collect its trials and take it down, tell Resolve how the deltas stand, then call
	// Collected.
	StepCollect StepKind = "collect"
	// StepEnd: the run is over; Ended says why.
	StepEnd StepKind = "end"
)

// How a run ends, as result.Run.Ended has it.
const (
	EndedResolved = "resolved"
	EndedPartly   = "resolved in part" // what was not given up is resolved
	EndedBudget   = "budget"
	EndedBuilds   = "builds" // as many builds as were asked for are done
	EndedFailed   = "failed" // no cell is left that could be measured
	EndedNothing  = "nothing measured"

	EndedInterrupted = "interrupted" // the user stopped the run
	Running          = "running"     // it has not ended, or was killed
)

// Step is what the runner has to do next.
type Step struct {
	Kind  StepKind
	Build int // number of the build, from 0; over a resumed run it goes on
	Round int // number of the round within the build, from 0 (StepRound)
	// Rounds is how many rounds the build is planned to have. It may end earlier, when time runs out.
	Rounds int
	Cells  []result.Cell
	Ended  string // StepEnd
}

// Finished is a build that a resumed run has measured before.
type Finished struct {
	Build  int
	Rounds int
	Cells  []string // IDs
}

// Scheduler decides, step by step, what a run measures next. Every cell takes part in the least number of builds, with
// equal rounds; from then on a build has only the cells whose deltas are unresolved, always with their baseline and its
// A/A control, until all are resolved or the budget ends. It has no clock: now is always the time since the start of the run.
// It is not safe for concurrent use.
type Scheduler struct {
	cells    []result.Cell
	rules    Rules
	cost     *learnedCosts
	builds   map[string]int // by cell: the builds it has taken part in
	resolved map[string]bool
	dropped  map[string]bool
	done     int // builds finished in this run and before
	next     int // number of the next build
	rounds   int // equal rounds of the builds that all take part in; 0 until planned
	ahead    []result.Cell
	out      Shed
	left     []leftOut     // that Shed names as left out on the way
	later    []leftOut     // left out at first
	came     []leftOut     // left out at first, and come in
	base     int           // builds that were done when the last came in
	states   int           // of the cells: so many builds give each state one
	renewal  time.Duration // of the next build, on what serves several
	until    time.Duration // when the build under way has to be over, so that the builds that are due fit

	phase   StepKind // what the runner is doing: "" is nothing
	current Step
	since   time.Duration // when it began
}

// NewScheduler plans the run of these cells, those that take part among them.
func NewScheduler(cells []result.Cell, rules Rules, costs Costs) *Scheduler {
	rules.MinRounds = max(1, rules.MinRounds)
	rules.MinBuilds = max(1, rules.MinBuilds)
	rules.Builds = max(rules.Builds, rules.MinBuilds)
	measured := Measured(cells)
	return &Scheduler{
		cells: measured, rules: rules, cost: newLearnedCosts(cells, costs), states: max(1, len(byState(measured))),
		builds: map[string]int{}, resolved: map[string]bool{}, dropped: map[string]bool{},
	}
}

// Resume tells the scheduler of builds that were finished before: it goes on after them. Call it before the first Next.
func (s *Scheduler) Resume(finished []Finished) {
	for _, f := range finished {
		for _, id := range f.Cells {
			s.builds[id]++
		}
		s.done++
		s.next = max(s.next, f.Build+1)
		s.rounds = max(s.rounds, f.Rounds)
	}
	s.comeAgain()
}

// Next says what to do now. Called again without news, it says the same again.
func (s *Scheduler) Next(now time.Duration) Step {
	switch s.phase {
	case StepRound:
		if s.current.Round >= s.current.Rounds && s.tail(now) {
			s.current.Rounds = s.current.Round + 1
		}
		fits := now+s.cost.round(s.current.Cells)+s.cost.collect <= s.rules.Budget
		if len(s.current.Cells) > 0 && s.current.Round < s.current.Rounds && (fits || s.first()) {
			return s.step(StepRound)
		}
		s.begin(StepCollect, now)
	case "":
		s.decide(now)
	}
	return s.step(s.phase)
}

// first says that nothing has been measured yet: a run whose preparation took all of its time has one round, for which it was prepared.
func (s *Scheduler) first() bool { return s.done == 0 && s.current.Round == 0 }

func (s *Scheduler) step(kind StepKind) Step {
	step := s.current
	step.Kind = kind
	return step
}

func (s *Scheduler) begin(phase StepKind, now time.Duration) { s.phase, s.since = phase, now }

// Built says that the build stands.
func (s *Scheduler) Built(now time.Duration) {
	if s.phase != StepBuild {
		return
	}
	s.cost.learnSetup(s.current.Cells, now-s.since)
	s.begin(StepRound, now)
}

// Once says that so much time of the step under way serves the whole run, as for services that stay up: it is not part of what such
// a step costs.
func (s *Scheduler) Once(took time.Duration) { s.since += took }

// Renewal says what the build after the present one will cost of that. It is not begun unless it fits with this, too.
func (s *Scheduler) Renewal(takes time.Duration) { s.renewal = takes }

// Measured says that a round is over. bursts has the time that each of the step's cells took, in their order; nil shares
// the time since the last call out among them.
func (s *Scheduler) Measured(now time.Duration, bursts []time.Duration) {
	if s.phase != StepRound {
		return
	}
	s.cost.learnRound(s.current.Cells, now-s.since, bursts)
	s.current.Round++
	if s.done == 0 && s.rules.Rounds == 0 && s.current.Round == min(roundsToLearn, s.current.Rounds) {
		// Now the cost of a round is measured: the number of rounds need not rest on a guess.
		s.shed(now)
		spent := s.cost.setup(s.current.Cells) + time.Duration(s.current.Round)*s.cost.round(s.current.Cells)
		s.rounds = s.equalRounds(s.participants(s.wanted), s.rules.Budget-now+spent)
		s.current.Rounds = max(s.rounds, s.current.Round)
	}
	if s.rules.Rounds == 0 && s.rules.MaxBuilds == 0 {
		s.trim(now)
	}
	s.since = now
}

// roundsToLearn is after how many rounds the cost of a round is taken as known.
const roundsToLearn = 3

// Collected says that the trials of the build are safe and its networks are gone.
func (s *Scheduler) Collected(now time.Duration) {
	if s.phase != StepCollect {
		return
	}
	s.cost.learnCollect(now - s.since)
	for _, c := range s.current.Cells {
		s.builds[c.ID]++
	}
	s.done++
	s.next++
	s.begin("", now)
}

// Resolve says which deltas are resolved, by the ID of their cell. What it does not name stays as it was.
func (s *Scheduler) Resolve(resolved map[string]bool) {
	for id, r := range resolved {
		s.resolved[id] = r
	}
}

// Known says whether it is known what the next build will have: before costs are measured, some of it may be left out yet.
func (s *Scheduler) Known() bool { return s.known() || s.rules.Rounds > 0 }

// Drop takes a cell out of all further builds and rounds, including the current one's: it failed, and would fail again. Without its
// baseline the cells of a setting have no delta, and are dropped as well. What is dropped does not come in later.
func (s *Scheduler) Drop(id string) {
	lost := []string{id}
	for _, c := range s.cells {
		if c.ID != id || c.Role != result.RoleBaseline {
			continue
		}
		for _, other := range s.cells {
			if other.Setting() == c.Setting() {
				lost = append(lost, other.ID)
			}
		}
	}
	s.drop(lost, true)
	for i, l := range s.later {
		s.later[i].cells = slices.DeleteFunc(l.cells, func(id string) bool { return slices.Contains(lost, id) })
	}
	s.later = slices.DeleteFunc(s.later, func(l leftOut) bool { return len(l.cells) == 0 })
	s.current.Cells = s.without(s.current.Cells)
}

// Ahead tells, during a build, which cells the next one will have, so that their networks can be set up while this one is measured.
// The next build then has these cells, unless the run ends before; ok is false when no further build is foreseen.
func (s *Scheduler) Ahead() (cells []result.Cell, ok bool) {
	if HaveStates(s.cells) {
		return nil, false // the next build is of another state
	}
	if s.ahead == nil {
		s.ahead = s.participants(func(c result.Cell) bool {
			builds := s.builds[c.ID]
			for _, now := range s.current.Cells {
				if now.ID == c.ID && s.phase != "" {
					builds++
				}
			}
			return builds < s.rules.MinBuilds || !s.resolved[c.ID]
		})
	}
	last := s.rules.MaxBuilds > 0 && s.done+1 >= s.rules.MaxBuilds
	return s.ahead, len(s.ahead) > 0 && !last
}
