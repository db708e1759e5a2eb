package experiment

import (
	"context"
	"errors"
	"fmt"
	"time"

	"netdelta/experiment/plan"
	"netdelta/experiment/study"
)

// patience is how long an agent on this machine is waited for in a run of so long a budget: a fifth of it, so that one that hangs does not
// take the time of all others. It is never less than what a busy machine makes an agent wait.
func patience(budget time.Duration) time.Duration {
	return min(max(budget/5, 2*time.Second), 10*time.Second)
}

// overtime is how long after its budget a run on this machine is ended, whatever it waits for.
func overtime(budget time.Duration) time.Duration { return max(budget/2, 10*time.Second) }

// errOvertime is why a run's context ends at its overtime.
var errOvertime = errors.New("the run's time is over")

// bounded carries out the steps of the run, and ends it where one of them waits for long after the time budget.
func (r *runner) bounded(ctx context.Context) error {
	if r.Overtime == 0 {
		return r.loop(ctx)
	}
	until := r.began.Add(r.Rules.Budget + r.Overtime)
	within, cancel := context.WithDeadlineCause(ctx, until, errOvertime)
	defer cancel()
	err := r.loop(within)
	if within.Err() == nil || ctx.Err() != nil || err != nil && !errors.Is(err, errOvertime) && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	r.Run.Ended = plan.EndedBudget
	note := fmt.Sprintf("ended %s after its time budget of %s was over, in the middle of a build: something on this machine hangs, or it has far too much to do",
		study.FormatDuration(r.Overtime), study.FormatDuration(r.Rules.Budget))
	if err != nil {
		note += fmt.Sprintf(" (%v)", err)
	}
	r.Run.Notes = append(r.Run.Notes, note)
	return nil
}
