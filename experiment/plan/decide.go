package plan

import (
	"slices"
	"time"

	"netdelta/result"
)

// decide begins the next build, or ends the run.
func (s *Scheduler) decide(now time.Duration) {
	s.shed(now)
	s.admit(now)
	cells := s.participants(s.wanted)
	if len(cells) == 0 {
		s.end(now)
		return
	}
	if kept := s.without(s.ahead); len(kept) > 0 {
		cells = kept
	}
	s.ahead = nil
	all := cells
	cells = s.nextState(all)
	rounds := s.plan(cells, all, s.rules.Budget-now-s.renewal)
	enough := s.rules.MaxBuilds > 0 && s.done >= s.most()
	if rounds == 0 || enough {
		s.current = Step{Ended: EndedBudget}
		if enough {
			s.current.Ended = EndedBuilds
		}
		s.begin(StepEnd, now)
		return
	}
	s.current = Step{Build: s.next, Rounds: rounds, Cells: cells}
	s.begin(StepBuild, now)
}

// without leaves out the cells that were dropped.
func (s *Scheduler) without(cells []result.Cell) []result.Cell {
	return slices.DeleteFunc(slices.Clone(cells), func(c result.Cell) bool { return s.dropped[c.ID] })
}

// end ends a run in which no cell is left that needs another build.
func (s *Scheduler) end(now time.Duration) {
	kept, lost := 0, 0
	for _, c := range s.cells {
		switch {
		case c.Role != s.target() || slices.Contains(s.out.Cells, c.ID) || s.waits(c.ID):
		case s.dropped[c.ID]:
			lost++
		default:
			kept++
		}
	}
	s.current = Step{Ended: EndedResolved}
	switch {
	case kept == 0:
		s.current.Ended = EndedFailed
	case s.rules.MaxBuilds > 0 && slices.ContainsFunc(s.cells, func(c result.Cell) bool { return s.spent(c) && s.unknown(c) }):
		s.current.Ended = EndedBuilds
	case lost > 0:
		s.current.Ended = EndedPartly
	}
	s.begin(StepEnd, now)
}

// target is the role of the cells that are to be resolved: in a run of baselines alone, the A/A controls.
func (s *Scheduler) target() result.Role {
	if slices.ContainsFunc(s.cells, func(c result.Cell) bool { return c.Role == result.RoleCell }) {
		return result.RoleCell
	}
	return result.RoleControl
}

// wanted says whether a cell needs another build.
func (s *Scheduler) wanted(c result.Cell) bool {
	return !s.spent(c) && s.unknown(c)
}

// spent says whether a cell was in as many builds as there are to be at most.
func (s *Scheduler) spent(c result.Cell) bool {
	return s.rules.MaxBuilds > 0 && s.builds[c.ID] >= s.rules.MaxBuilds
}

// most is the number of builds of a run at most, where that is given: what came in later has as many as the others.
func (s *Scheduler) most() int { return s.base + s.rules.MaxBuilds*s.states }

// unknown says whether a cell needs more builds.
func (s *Scheduler) unknown(c result.Cell) bool {
	return s.builds[c.ID] < s.rules.MinBuilds || !s.resolved[c.ID]
}

// participants are the cells that want another build, each with its baseline and A/A control.
func (s *Scheduler) participants(wanted func(result.Cell) bool) []result.Cell {
	target := s.target()
	settings := map[result.Setting]bool{}
	takes, stateOf := map[string]bool{}, map[result.Setting]string{}
	for _, c := range s.cells {
		if s.dropped[c.ID] {
			continue
		}
		if c.Role == result.RoleBaseline {
			stateOf[c.Setting()] = c.State
		}
		if c.Role == target && wanted(c) || s.behind(c) {
			takes[c.ID], settings[c.Setting()] = true, true
		}
	}
	var cells []result.Cell
	for _, c := range s.cells {
		// What stands alongside a baseline with a state of its own does so in each of its builds.
		sameState := c.State != "" && c.State == stateOf[c.Setting()]
		if !s.dropped[c.ID] && (takes[c.ID] || (c.Role != result.RoleCell || sameState) && settings[c.Setting()]) {
			cells = append(cells, c)
		}
	}
	return cells
}

// plan is the number of rounds of the next build of these cells, of all that need one, with so much time left; 0 when it would not be
// over in time.
func (s *Scheduler) plan(cells, all []result.Cell, left time.Duration) int {
	round, once := s.cost.round(cells), s.cost.once(cells)
	fit := fits(left, 1, once, round)
	if s.done == 0 && fit < max(s.rules.MinRounds, s.rules.Rounds) {
		return max(1, fit) // a run that was slow to be prepared measures what it can, in place of nothing
	}
	if s.rules.Rounds > 0 {
		if fit < s.rules.Rounds {
			return 0
		}
		return s.rules.Rounds
	}
	if fit < s.rules.MinRounds {
		return 0
	}
	if s.rounds == 0 {
		s.rounds = s.equalRounds(all, left)
	}
	rounds := s.rounds
	if due := s.due(all); due > 0 {
		// The least number of builds comes first: if they no longer fit with as many rounds, they have fewer.
		once, round := s.usual(all)
		rounds = min(rounds, max(s.rules.MinRounds, fits(left, due, once, round)))
	} else if round > 0 {
		// From here on at least half of the time goes into measuring, not into setting up.
		rounds = max(rounds, int(once/round)+1)
	}
	return min(rounds, fit)
}

// tail says whether the time after the current build is too short for another one: the build then goes on until the budget ends.
func (s *Scheduler) tail(now time.Duration) bool {
	if s.rules.Rounds > 0 || s.last() || s.due(s.participants(s.wanted)) > 1 {
		return false
	}
	cells := s.current.Cells
	rest := s.rules.Budget - now - s.cost.collect - s.renewal
	return rest < s.cost.once(cells)+time.Duration(s.rules.MinRounds)*s.cost.round(cells)
}

// last says whether the number of builds, not the time, ends the run after the next build.
func (s *Scheduler) last() bool {
	return s.rules.MaxBuilds > 0 && s.done+1 >= s.most()
}

// due is the number of builds until each of the cells has taken part in the least number.
func (s *Scheduler) due(cells []result.Cell) int {
	due := 0
	for _, part := range byState(cells) {
		most, stated := 0, HaveStates(part)
		for _, c := range part {
			if counts(c) || !stated {
				most = max(most, s.rules.MinBuilds-s.builds[c.ID])
			}
		}
		due += most
	}
	return due
}

// usual is what a build of these cells costs in addition to its rounds, and what a round costs: on average over the states.
func (s *Scheduler) usual(cells []result.Cell) (once, round time.Duration) {
	parts := byState(cells)
	for _, part := range parts {
		once += s.cost.once(part) / time.Duration(len(parts))
		round += s.cost.round(part) / time.Duration(len(parts))
	}
	return once, round
}

// equalRounds divides the time among the planned builds, or among fewer when they would be too short.
func (s *Scheduler) equalRounds(cells []result.Cell, left time.Duration) int {
	once, round := s.usual(cells)
	for builds := s.rules.Builds*s.states - s.done; builds > s.rules.MinBuilds*s.states-s.done; builds-- {
		if rounds := fits(left, builds, once, round); rounds >= s.rules.MinRounds {
			return rounds
		}
	}
	return max(s.rules.MinRounds, fits(left, max(1, s.rules.MinBuilds*s.states-s.done), once, round))
}

// fits is how many rounds each of so many builds can have in the time.
func fits(left time.Duration, builds int, once, round time.Duration) int {
	const most = 1 << 20 // for rounds that cost nothing
	each := left/time.Duration(builds) - once
	switch {
	case each < round || each < 0:
		return 0
	case round <= 0:
		return most
	}
	return int(min(each/round, most))
}
