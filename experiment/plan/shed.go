package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"netdelta/internal/gather"
	"netdelta/result"
	"netdelta/unit"
)

// Shed is what a run left out because the machine is slower than planned.
type Shed struct {
	// Cells are the IDs. Shown are those of them that have builds enough to be shown with what they measured before.
	Cells, Shown []string
	// Whole is a time budget that holds all, as far as is known since something was left out.
	Whole string
	// Why is each cell's reason, Note names all that is left out.
	Why, Note string
	// In are the IDs of cells that were left out at first and have come in, as Came says. Rest names those that have not.
	In   []string
	Came []string
	Rest string
}

// shed leaves out loads, the last chosen first, until the others fit into the time that is left with as many builds as verdicts on
// small differences take; where one load is too much, it leaves out placements and levels of that one, and then rounds of builds. The
// choice rested on guessed costs; after the first rounds they are known. On a busy machine the run then has fewer deltas that mean
// something, not many that don't.
func (s *Scheduler) shed(now time.Duration) {
	if !s.known() {
		return
	}
	if s.rules.Rounds > 0 && !s.rules.OnePass || s.rules.MaxBuilds > 0 {
		// The study asks for so many rounds or builds. What came in goes again where its first builds say that there is no time for it.
		if in := s.inLater(); len(in) > 0 && s.done == s.base+s.states {
			s.leave(now, s.leaveOut(now, append([]leftOut{{}}, in...), 1))
		}
		return
	}
	s.fewerRounds(now, s.rules.MinRounds*2/3)
	loads, named := s.loads()
	out := s.leaveOut(now, loads, named)
	if !s.fitting(now) {
		settings, stay := s.settings()
		out = append(out, s.leaveOut(now, settings, stay)...)
	}
	s.fewerRounds(now, leastRounds)
	s.leave(now, out)
}

// leave says what is left out from now on.
func (s *Scheduler) leave(now time.Duration, out []leftOut) {
	if len(out) == 0 {
		return
	}
	s.left = append(s.left, out...)
	s.ahead, s.current.Cells = s.without(s.ahead), s.without(s.current.Cells)
	s.out.Cells, s.out.Shown = nil, nil
	names := namesOf(s.left)
	for _, l := range s.left {
		s.out.Cells = append(s.out.Cells, l.cells...)
	}
	s.out.Shown = gather.Where(s.out.Cells, func(id string) bool { return s.builds[id] >= shownFrom })
	whole := unit.FormatDuration(roundUp(s.whole(now)))
	s.out.Whole = whole
	ground := cmp.Or(s.rules.Ground, "this machine")
	s.out.Why = fmt.Sprintf("left out by the time budget of %s: %s takes longer than was planned; about %s hold it", unit.FormatDuration(s.rules.Budget), ground, whole)
	s.out.Note = fmt.Sprintf("%s takes longer than was planned: %s left out %s, so that the others have the %d builds that verdicts on small differences take; --time-budget %s holds these, too",
		ground, strings.Join(names, ", ")+were(len(names)), s.when(), s.rules.MinBuilds, whole)
}

// shownFrom is how many builds the deltas of what is left out need to be shown: those of one or two would only be in the way.
const shownFrom = 3

// leastRounds is how many rounds a build has at least where more would leave too few builds.
const leastRounds = 3

// fewerRounds has builds contain as many rounds as fit, and not fewer than some, where they don't fit otherwise.
func (s *Scheduler) fewerRounds(now time.Duration, least int) {
	if s.rules.Rounds == 0 && !s.fitting(now) {
		s.rules.MinRounds = min(s.rules.MinRounds, max(leastRounds, least, s.fitRounds(now)))
	}
}

// trim ends a build whose rounds take longer than was planned, when another one would leave too little time for the builds that are due.
func (s *Scheduler) trim(now time.Duration) {
	if s.current.Round == s.rules.MinRounds {
		due, left := s.dueWithin(now)
		once, round := s.usual(s.participants(s.wanted))
		s.until = now + left - time.Duration(max(due, 0))*(once+time.Duration(s.rules.MinRounds)*round)
	}
	if s.current.Round >= s.rules.MinRounds && now+s.cost.round(s.current.Cells) > s.until {
		s.current.Rounds = s.current.Round
	}
}

// known says whether costs are measured. The first state of a cluster says nothing of the others.
func (s *Scheduler) known() bool {
	return s.done > 0 || s.phase == StepRound && s.current.Round >= roundsToLearn && !HaveStates(s.cells)
}

// when says when something was left out.
func (s *Scheduler) when() string {
	if s.done == 0 {
		return "in the first build"
	}
	return "after " + unit.Counted(s.done, "build")
}

// fitting says whether the builds that are due fit into the time that is left.
func (s *Scheduler) fitting(now time.Duration) bool {
	due, _ := s.dueWithin(now)
	return due <= 0 || s.fitRounds(now) >= s.rules.MinRounds
}

// fitRounds is how many rounds the builds that are due can have.
func (s *Scheduler) fitRounds(now time.Duration) int {
	due, left := s.dueWithin(now)
	once, round := s.usual(s.participants(s.wanted))
	return fits(left, max(1, due), once, round)
}

// dueWithin is how many builds are due after the one under way, and the time that is left for them.
func (s *Scheduler) dueWithin(now time.Duration) (due int, left time.Duration) {
	cells := s.participants(s.wanted)
	due, left = s.due(cells), s.rules.Budget-now
	if s.phase == StepRound {
		left -= time.Duration(max(0, s.rules.MinRounds-s.current.Round))*s.cost.round(s.without(s.current.Cells)) + s.cost.collect
		due--
	}
	return due, left
}

// leftOut is something to leave out, or that is: what it is called, and its cells.
type leftOut struct {
	name  string
	cells []string
}

// loads are the loads that are measured still, the first the most important, and how many of them stay: the first one, and of each workload
// that the user named the first. What came in later is the least.
func (s *Scheduler) loads() (all []leftOut, stay int) {
	in := func(c result.Cell) bool { return slices.Contains(s.out.In, c.ID) }
	loads, of := s.rules.inTurn(slices.DeleteFunc(s.without(s.cells), in), byWorkload)
	for i, l := range loads {
		if s.rules.named(l, loads[:i]) {
			stay++
		}
		all = append(all, leftOut{Describe(l.workload, l.params), ids(of[l])})
	}
	return append(all, s.inLater()...), max(stay, 1)
}

// settings are the settings that are measured still, in the order of the study, those across nodes first: that is where most networks differ.
// So many of them stay: the first one or, before all others, the first of each workload that the user named.
func (s *Scheduler) settings() (all []leftOut, stay int) {
	cells := s.without(s.cells)
	var first []string // workloads
	for _, across := range []bool{true, false} {
		for _, at := range result.Settings(cells) {
			if (at.Placement == result.CrossNode) == across {
				mine := slices.DeleteFunc(slices.Clone(cells), func(c result.Cell) bool { return c.Setting() != at })
				l := leftOut{called(at), ids(mine)}
				if s.rules.Named && !slices.Contains(first, at.Workload) {
					all = slices.Insert(all, len(first), l)
					first = append(first, at.Workload)
					continue
				}
				all = append(all, l)
			}
		}
	}
	return all, max(len(first), 1)
}

// called names a setting for people: "tcp-rr 300B waking across nodes".
func called(at result.Setting) string {
	where := "on one node"
	if at.Placement == result.CrossNode {
		where = "across nodes"
	}
	regime := at.Regime()
	if regime != "" {
		at.Params.CPU, where = "", regime+" "+where
	}
	return Describe(at.Workload, at.Params) + " " + where
}

// leaveOut leaves out some of several, the last first, until the others fit or so many are left as stay. Small ones that were left out
// before an expensive one come back if they can.
func (s *Scheduler) leaveOut(now time.Duration, of []leftOut, stay int) (out []leftOut) {
	for len(of) > stay && !s.fitting(now) {
		last := of[len(of)-1]
		of = of[:len(of)-1]
		s.drop(last.cells, true)
		out = append(out, last)
	}
	var left []leftOut
	for _, l := range slices.Backward(out) {
		s.drop(l.cells, false)
		if !s.fitting(now) {
			s.drop(l.cells, true)
			left = append(left, l)
		}
	}
	return left
}

// ids are the cells' IDs.
func ids(cells []result.Cell) []string {
	return gather.Each(cells, func(c result.Cell) string { return c.ID })
}

// drop leaves cells out of the rest of the run, or brings them back.
func (s *Scheduler) drop(cells []string, out bool) {
	for _, id := range cells {
		s.dropped[id] = out
	}
}

// whole estimates how long the run would take with nothing left out. It is longer than the budget, which did not hold all, however small
// costs have turned out since.
func (s *Scheduler) whole(now time.Duration) time.Duration {
	once, round := s.usual(s.cells)
	all := once + time.Duration(s.rules.MinRounds)*round
	return max(now/time.Duration(max(1, s.done))+time.Duration(s.rules.Builds*s.states)*all, s.rules.Budget+s.rules.Budget/4)
}

// Shed is what was left out since the run began.
func (s *Scheduler) Shed() Shed { return s.out }

// Mark returns a run's cells with the ones left out marked as skipped, but for those that are shown.
func (o Shed) Mark(cells []result.Cell) []result.Cell {
	marked := slices.Clone(cells)
	for i, c := range marked {
		switch {
		case slices.Contains(o.Shown, c.ID):
		case slices.Contains(o.Cells, c.ID):
			marked[i].Skipped = o.Why
		case slices.Contains(o.In, c.ID):
			marked[i].Skipped = ""
		case o.Whole != "" && strings.HasSuffix(c.Skipped, holdsAll): // as guessed
			why, _, _ := strings.Cut(c.Skipped, "; ")
			marked[i].Skipped = why + "; " + o.Whole + holdsAll
		}
	}
	return marked
}

// Explain adds to a run's notes what was left out and what has come in; the note on what the budget holds is then no longer true. Of two
// budgets that hold all, only the one that is known better is named.
func (o Shed) Explain(notes []string) []string {
	all := slices.Concat(notes, o.Came, []string{o.Rest, o.Note})
	for i, n := range all {
		if o.Note != "" && strings.HasSuffix(n, holdsAll) && n != o.Rest {
			all[i] = n[:strings.LastIndex(n, "; ")]
		}
	}
	return slices.DeleteFunc(all, func(n string) bool { return n == "" || len(o.In) > 0 && strings.Contains(n, fittedOn) })
}

// were is the verb for n loads.
func were(n int) string {
	if n == 1 {
		return " was"
	}
	return " were"
}

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
	loads, of := s.rules.inTurn(cells, byWorkload)
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
		s.out.Rest = fmt.Sprintf("left out by the time budget of %s: %s; --time-budget %s"+holdsAll,
			unit.FormatDuration(s.rules.Budget), strings.Join(rest, ", "), unit.FormatDuration(roundUp(s.whole(now))))
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
		strings.Join(namesOf(in), ", ")+were(len(in)), s.next+1, unit.FormatDuration(s.rules.Budget)))
}

// comeAgain has loads take part that have come in before the run was resumed.
func (s *Scheduler) comeAgain() {
	in := gather.Where(s.later, func(l leftOut) bool {
		return slices.ContainsFunc(l.cells, func(id string) bool { return s.builds[id] > 0 })
	})
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
