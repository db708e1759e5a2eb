package experiment

import (
	"context"
	"time"

	"netdelta/result"
)

// method measures cells build by build. The calls follow the scheduler's steps: begin, any number of rounds, collect.
type method interface {
	// begin sets the build up.
	begin(ctx context.Context, index int, cells []result.Cell) error
	// prepare starts to set up the build after the one that is being measured, in the background.
	prepare(ctx context.Context, index int, cells []result.Cell)
	// round measures each cell once and gives the time that each took, in the order of begin's cells. disturbed says that
	// the machine did something else meanwhile, so that the round has to be repeated.
	round(ctx context.Context, round int) (spans []time.Duration, disturbed bool, err error)
	// once is what was spent, since it was last asked for, on what is done once in a run and not in each build.
	once() time.Duration
	// collect gives the trials of the build, also those of one that was interrupted, and removes its networks.
	collect(ctx context.Context) ([]result.Trial, error)
	// close removes everything that is up or under way.
	close() error
}
