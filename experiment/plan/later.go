package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"netdelta/experiment/study"
	"netdelta/internal/gather"
	"netdelta/result"
)

// Waiting returns the cells that are left out though they can be measured, as they would take part.
func Waiting(cells []result.Cell) []result.Cell {
	all, skipped := slices.Clone(cells), map[string]bool{}
	for i, c := range all {
		skipped[c.ID], all[i].Skipped = c.Skipped != "", ""
	}
	return slices.DeleteFunc(Measured(all), func(c result.Cell) bool { return !skipped[c.ID] })
}

// Later tells the scheduler of cells that the time budget does not hold as guessed. They come in when costs turn out to be smaller, or
// when the others are known and time is left. Call it before Resume and the first Next.
func (s *Scheduler) Later(cells []result.Cell) {
	loads, of := byTurns(cells, byWorkload)
	for _, l := range loads {
		out := leftOut{Describe(l.workload, l.params), ids(of[l])}
		s.later = append(s.later, out)
		s.drop(out.cells, true)
	}
	s.cells = append(s.cells, cells...)
}

// waits says whether a cell was left out at first and has not come in.
func (s *Scheduler) waits(id string) bool {
	return slices.ContainsFunc(s.later, func(l leftOut) bool { return slices.Contains(l.cells, id) })
}

// admit has loads come in that were left out at first, as far as the time that is left holds them with as many builds as the others
// have: that was guessed, and is known once each state was visited.
func (s *Scheduler) admit(now time.Duration) {
	if len(s.later) == 0 || !s.blockDone() {
		return
	}
	const reserve = 10 // a tenth of the time that is left: the next builds may take longer than those before
	var in []leftOut
	for _, l := range s.later {
		s.drop(l.cells, false)
		if s.fitting(now + max(0, s.rules.Budget-now)/reserve) {
			in = append(in, l)
		} else {
			s.drop(l.cells, true)
		}
	}
	s.come(in)
	if rest := namesOf(s.later); len(rest) > 0 && len(s.out.In) > 0 {
		s.out.Rest = fmt.Sprintf("left out by the time budget of %s: %s; --time-budget %s holds all",
			study.FormatDuration(s.rules.Budget), strings.Join(rest, ", "), study.FormatDuration(roundUp(s.whole(now))))
	}
}

// blockDone says that what is measured still was measured in each of its states, and as often in one as in the others: from here on blocks are
// whole for what comes in, too.
func (s *Scheduler) blockDone() bool {
	cells, builds := s.participants(s.wanted), map[result.Setting]int{}
	for _, part := range byState(cells) {
		if len(part) > 0 && !s.cost.knows(part) {
			return false
		}
	}
	for _, c := range cells {
		if !counts(c) || c.Role == result.RoleCell && !s.wanted(c) {
			continue
		}
		if n, known := builds[c.Setting()]; known && n != s.builds[c.ID] {
			return false
		}
		builds[c.Setting()] = s.builds[c.ID]
	}
	return true
}

// come has loads take part from the next build on.
func (s *Scheduler) come(in []leftOut) {
	if len(in) == 0 {
		return
	}
	for _, l := range in {
		s.drop(l.cells, false)
		s.out.In = append(s.out.In, l.cells...)
	}
	s.later = slices.DeleteFunc(s.later, func(l leftOut) bool { return slices.Contains(s.out.In, l.cells[0]) })
	s.came, s.base, s.out.Rest = append(s.came, in...), s.done, ""
	s.states = max(1, len(byState(s.without(s.cells))))
	s.out.Came = append(s.out.Came, fmt.Sprintf("%s measured from build %d on: as guessed at first, the time budget of %s did not hold all",
		strings.Join(namesOf(in), ", ")+were(len(in)), s.next+1, study.FormatDuration(s.rules.Budget)))
}

// comeAgain has loads take part that have come in before the run was resumed.
func (s *Scheduler) comeAgain() {
	var in []leftOut
	for _, l := range s.later {
		if slices.ContainsFunc(l.cells, func(id string) bool { return s.builds[id] > 0 }) {
			in = append(in, l)
		}
	}
	s.come(in)
}

// inLater are the loads that have come in and are measured still.
func (s *Scheduler) inLater() []leftOut {
	return slices.DeleteFunc(slices.Clone(s.came), func(l leftOut) bool { return s.dropped[l.cells[0]] })
}

// namesOf are the names of what is left out.
func namesOf(all []leftOut) []string {
	return gather.Each(all, func(l leftOut) string { return l.name })
}
