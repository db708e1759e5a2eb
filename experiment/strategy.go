package experiment

import (
	"context"
	"time"

	"netdelta/experiment/blocks"
	"netdelta/experiment/sidebyside"
	"netdelta/experiment/states"
	"netdelta/result"
)

// Strategy measures cells build by build. The calls follow the scheduler's steps: Begin, any number of Rounds, Collect.
type Strategy interface {
	// Begin sets the build up.
	Begin(ctx context.Context, build int, cells []result.Cell) error
	// Prepare may start to set up the next build in the background.
	Prepare(ctx context.Context, build int, cells []result.Cell)
	// Round measures each cell once and gives the time that each took, in the order of Begin's cells. disturbed says that the
	// machine did something else meanwhile, so that the round has to be repeated.
	Round(ctx context.Context, round int) (spans []time.Duration, disturbed bool, err error)
	// LeaveOut takes cells out of the build under way: they are not measured any more, and give no trial.
	LeaveOut(cells []string)
	// Once is the time spent since the last call on what serves the whole run instead of one build.
	Once() time.Duration
	// Renewal is what the next build will cost of that, as far as it is known.
	Renewal() time.Duration
	// Collect gives the trials of the build, also of one that was interrupted, and removes its networks.
	Collect(ctx context.Context) ([]result.Trial, error)
	// Close removes everything that is up or under way.
	Close() error
}

// newStrategy is the catalogue: a further strategy is a package and a case here.
func (r *runner) newStrategy() Strategy {
	switch {
	case len(r.Changes) > 0:
		return states.New(r.context, r.rounds, r.Changer)
	case r.Blocks:
		return blocks.New(r.context, r.rounds, func() time.Duration { return r.Rules.Budget - r.elapsed() })
	}
	return sidebyside.New(r.context, r.rounds)
}
