package experiment

import (
	"fmt"
	"slices"
	"strings"

	"netdelta/result"
)

// hopeless is after how many useless builds in a row a cell is left out of the rest of the run.
const hopeless = 2

// streak is how many builds in a row were of no use to a cell, and how much that tells, in halves.
type streak struct{ builds, halves int }

// dropHopeless takes cells out of the run that fail or are misrouted again and again, so that they don't eat the budget.
func (r *runner) dropHopeless(trials []result.Trial) {
	outage := r.outage(trials)
	for _, t := range trials {
		how, why := "failed", t.Failed
		if t.Failed == "" && t.Path != nil && !t.Path.OK {
			how, why = "was misrouted", strings.Join(t.Path.Findings, "; ")
		}
		if why == "" {
			r.failures[t.Cell] = streak{}
			continue
		}
		s := r.failures[t.Cell]
		before := s.halves
		s.builds++
		if s.halves += 2; outage || r.lostOnTheWay(t) {
			s.halves--
		}
		r.failures[t.Cell] = s
		if before < 2*hopeless && s.halves >= 2*hopeless {
			r.scheduler.Drop(t.Cell)
			r.run.Notes = append(r.run.Notes, fmt.Sprintf("%s %s in %d builds in a row and was given up: %s", t.Cell, how, s.builds, why))
		}
	}
}

// lostOnTheWay says of a trial of other machines that it had measured already when it failed: a pod that is evicted or a node that is
// lost says little of the next build, in which the same node may be missed for the first time.
func (r *runner) lostOnTheWay(t result.Trial) bool {
	return !r.stage.able.OwnsNodes && t.Failed != "" && len(t.Bursts.Round) > 0
}

// outage says that a build came to nothing on other machines on which this run has measured already: whatever was in the way is not
// the fault of any cell, and may be gone after a while.
func (r *runner) outage(trials []result.Trial) bool {
	whole := func(t result.Trial) bool { return t.Failed == "" }
	return !r.stage.able.OwnsNodes && !slices.ContainsFunc(trials, whole) && slices.ContainsFunc(r.trials, whole)
}
