package experiment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"netdelta/experiment/measure"
	"netdelta/experiment/plan"
	"netdelta/internal/gather"
	"netdelta/result"
	"netdelta/unit"
)

// maxFailures is after how many failed builds in a row a cell is left out of the rest of the run.
const maxFailures = 2

// failures counts the builds in a row in which a cell failed, and weighs them in halves.
type failures struct{ builds, halves int }

// giveUp takes cells out of the run that fail or are misrouted again and again, so that they don't eat the budget.
func (r *runner) giveUp(trials []result.Trial) {
	outage := r.outage(trials)
	for _, t := range trials {
		how, why := "failed", t.Failed
		if t.Failed == "" && t.Path != nil && !t.Path.OK {
			how, why = "was misrouted", strings.Join(t.Path.Findings, "; ")
		}
		if why == "" {
			r.failures[t.Cell] = failures{}
			continue
		}
		f := r.failures[t.Cell]
		before := f.halves
		f.builds++
		if f.halves += 2; outage || r.lostMidway(t) {
			f.halves--
		}
		r.failures[t.Cell] = f
		if before < 2*maxFailures && f.halves >= 2*maxFailures {
			r.scheduler.Drop(t.Cell)
			r.Run.Notes = append(r.Run.Notes, fmt.Sprintf("%s %s in %d builds in a row and was given up: %s", t.Cell, how, f.builds, why))
		}
	}
}

// lostMidway says that a trial on nodes that may be lost failed after it had measured: an evicted pod or a lost node says little of the next
// build, in which the same node may be missed for the first time.
func (r *runner) lostMidway(t result.Trial) bool {
	return r.context.LosesNodes() && t.Failed != "" && len(t.Bursts.Round) > 0
}

// outage says that all of a build failed, on nodes that may be lost and on which this run has measured already: no cell is the cause, and it may
// pass.
func (r *runner) outage(trials []result.Trial) bool {
	whole := func(t result.Trial) bool { return t.Failed == "" }
	return r.context.LosesNodes() && !slices.ContainsFunc(trials, whole) && slices.ContainsFunc(r.trials, whole)
}

// usualCongestion is the congestion control of cells that ask for none.
const usualCongestion = "cubic"

// noteCongestion notes trials that could not have the usual congestion control.
func (r *runner) noteCongestion(t result.Trial) {
	if r.context.OwnsNodes() || t.TCP == nil || t.TCP.CongestionControl == "" || t.TCP.CongestionControl == usualCongestion || t.Failed != "" {
		return
	}
	i := slices.IndexFunc(r.Run.Cells, func(c result.Cell) bool { return c.ID == t.Cell })
	if i < 0 || r.Run.Cells[i].Params.CongestionControl != "" {
		return
	}
	note := fmt.Sprintf("TCP ran under congestion control %s where %s is usual: the pods may not choose; sysctl %s of their nodes allows it",
		t.TCP.CongestionControl, usualCongestion, measure.AllowCongestionControl)
	r.Run.Notes = gather.Once(r.Run.Notes, note)
}

// patience is how long an agent on this machine is waited for in a run of so long a budget: a fifth of it, so that one that hangs does not
// take the time of all others. It is never less than what a busy machine makes an agent wait.
func patience(budget time.Duration) time.Duration {
	return min(max(budget/5, 2*time.Second), 10*time.Second)
}

// overtime is how long after its budget a run on this machine is ended, whatever it waits for.
func overtime(budget time.Duration) time.Duration { return max(budget/2, 10*time.Second) }

// overtimeElsewhere is how long after its budget a run on others' nodes is ended that has measured something. One that has not may go on for as
// long as a run on this machine.
func overtimeElsewhere(budget time.Duration) time.Duration { return max(budget/10, 3*time.Second) }

// overtimeError is why a run's context ends so long after its budget.
type overtimeError struct{ after time.Duration }

// Error implements error.
func (overtimeError) Error() string { return "the run's time is over" }

// withinOvertime is a context that ends at the run's overtime, or later where nothing was measured by then.
func (r *runner) withinOvertime(ctx context.Context) (within context.Context, stop func()) {
	within, cancel := context.WithCancelCause(ctx)
	soon, late := r.Overtime, max(r.Overtime, overtime(r.Rules.Budget))
	first := time.AfterFunc(r.Rules.Budget+soon-r.elapsed(), func() {
		if r.whole.Load() {
			cancel(overtimeError{soon})
		}
	})
	last := time.AfterFunc(r.Rules.Budget+late-r.elapsed(), func() { cancel(overtimeError{late}) })
	return within, func() { first.Stop(); last.Stop(); cancel(nil) }
}

// bounded carries out the steps of the run, and ends it where one of them waits for long after the time budget.
func (r *runner) bounded(ctx context.Context) error {
	if r.Overtime == 0 {
		return r.loop(ctx)
	}
	within, stop := r.withinOvertime(ctx)
	defer stop()
	err := r.loop(within)
	over, is := errors.AsType[overtimeError](context.Cause(within))
	told, _ := errors.AsType[overtimeError](err)
	if !is || ctx.Err() != nil || err != nil && told != over && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
		return err
	}
	r.Run.Ended = plan.EndedBudget
	why := "something on this machine hangs, or it has far too much to do"
	if r.Rules.Ground != "" {
		why = r.Rules.Ground + " kept it waiting"
	}
	note := fmt.Sprintf("ended %s after its time budget of %s was over, in the middle of a build: %s",
		unit.FormatDuration(over.after), unit.FormatDuration(r.Rules.Budget), why)
	if err != nil {
		note += fmt.Sprintf(" (%v)", err)
	}
	r.Run.Notes = append(r.Run.Notes, note)
	return nil
}
