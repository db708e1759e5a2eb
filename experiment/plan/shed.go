package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"netdelta/experiment/study"
	"netdelta/result"
)

// Shed is what a run left out because the machine is slower than planned.
type Shed struct {
	// Cells are the IDs.
	Cells []string
	// Why is each cell's reason, Note names all that is left out.
	Why, Note string
}

// shed leaves out loads, the last chosen first, until the others fit into the time that is left with as many builds as an interval
// takes. The choice rested on guessed costs; after the first build they are known. On a busy machine the run then has fewer deltas
// that mean something, not many that don't.
func (s *Scheduler) shed(now time.Duration) {
	if s.done == 0 || s.rules.Rounds > 0 && !s.rules.OnePass || s.rules.MaxBuilds > 0 {
		return // the study asks for so many rounds or builds
	}
	loads, of := byTurns(s.without(s.cells), byWorkload)
	var out []leftOut
	for len(loads) > 1 && !s.fitting(now) {
		last := loads[len(loads)-1]
		loads = loads[:len(loads)-1]
		out = append(out, s.leave(last, of[last]))
	}
	if len(out) == 0 {
		return
	}
	// Small loads that were left out before an expensive one may come back.
	for _, l := range slices.Backward(out) {
		s.drop(l.cells, false)
		if !s.fitting(now) {
			s.drop(l.cells, true)
			s.left = append(s.left, l)
		}
	}
	s.ahead = s.without(s.ahead)
	s.out.Cells = nil
	var names []string
	for _, l := range s.left {
		names = append(names, Describe(l.workload, l.params))
		s.out.Cells = append(s.out.Cells, l.cells...)
	}
	whole := study.FormatDuration(roundUp(s.whole(now)))
	ground := cmp.Or(s.rules.Ground, "this machine")
	s.out.Why = fmt.Sprintf("left out by the time budget of %s: %s takes longer than was planned; about %s hold it", study.FormatDuration(s.rules.Budget), ground, whole)
	s.out.Note = fmt.Sprintf("%s takes longer than was planned: %s left out after %s, so that the others have the %d that verdicts on small differences take; --time-budget %s holds all",
		ground, strings.Join(names, ", ")+were(len(names)), builds(s.done), s.rules.MinBuilds, whole)
}

// fitting says whether the builds that are due fit into the time that is left.
func (s *Scheduler) fitting(now time.Duration) bool {
	cells := s.participants(s.wanted)
	due := s.due(cells)
	once, round := s.usual(cells)
	return due <= 0 || fits(s.rules.Budget-now, due, once, round) >= s.rules.MinRounds
}

// leftOut is a load that is left out, with the cells that were dropped for it.
type leftOut struct {
	load
	cells []string
}

// leave leaves a load out, with its cells.
func (s *Scheduler) leave(l load, cells []result.Cell) leftOut {
	out := leftOut{load: l}
	for _, c := range cells {
		out.cells = append(out.cells, c.ID)
	}
	s.drop(out.cells, true)
	return out
}

// drop leaves cells out of the rest of the run, or brings them back.
func (s *Scheduler) drop(cells []string, out bool) {
	for _, id := range cells {
		s.dropped[id] = out
	}
}

// whole estimates how long the run would take with nothing left out.
func (s *Scheduler) whole(now time.Duration) time.Duration {
	once, round := s.usual(s.cells)
	all := once + time.Duration(s.rules.MinRounds)*round
	return now/time.Duration(max(1, s.done)) + time.Duration(s.rules.Builds*s.states)*all
}

// Shed is what was left out since the run began.
func (s *Scheduler) Shed() Shed { return s.out }

// Mark returns a run's cells with the ones left out marked as skipped: deltas of one or two builds would only be in the way.
func (o Shed) Mark(cells []result.Cell) []result.Cell {
	marked := slices.Clone(cells)
	for i := range marked {
		if slices.Contains(o.Cells, marked[i].ID) {
			marked[i].Skipped = o.Why
		}
	}
	return marked
}

// builds counts builds in words.
func builds(n int) string {
	if n == 1 {
		return "1 build"
	}
	return fmt.Sprintf("%d builds", n)
}

// were is the verb for n loads.
func were(n int) string {
	if n == 1 {
		return " was"
	}
	return " were"
}
