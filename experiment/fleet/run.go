package fleet

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"netdelta/experiment/record"
	"netdelta/result"
)

// ErrNothing says that no fleet of a run measured anything.
var ErrNothing = errors.New("no client of any fleet measured anything")

// Run measures the builds that the record lacks. Networks stand side by side in each build and fire in turn, in an order drawn
// afresh for each round. The outcome and the record hold what was measured also after an error of ctx; a network that could not be
// set up in a build is among its failures. The error matches ErrNothing when nothing was measured at all.
func Run(ctx context.Context, c Config) (Outcome, error) {
	if err := c.Check(); err != nil {
		return Outcome{}, err
	}
	rec := c.Record
	if rec == nil {
		rec = record.New(result.Run{Seed: c.Seed}, nil)
	}
	params := c.Params
	params.Clients = c.Clients
	s := result.Strategy{Name: result.StrategyFleet, Burst: c.Burst, Clients: c.Clients, Servers: c.Servers}
	if err := rec.Begin(s, record.Cells(c.Networks, c.Workload.Name, params, len(c.Networks) > 1)); err != nil {
		return Outcome{}, err
	}
	builds := record.Builds{Record: rec, Count: c.Builds, Seed: c.Seed, Log: c.Log}
	leads := map[string]time.Duration{} // by cell
	open := func(ctx context.Context, cell result.Cell, build int) (*fleet, error) {
		return open(ctx, c, builds, cell, build, leads[cell.ID])
	}
	failed := record.Measure(ctx, builds, open, func(ctx context.Context, rng *rand.Rand, ready []*fleet) error {
		for round := range c.Bursts {
			for _, i := range rng.Perm(len(ready)) {
				f := ready[i]
				f.fire(ctx, round)
				leads[f.cell.ID] = f.tally.lead
				if err := ctx.Err(); err != nil {
					return err
				}
			}
		}
		return nil
	})
	o, err := Of(rec.Run, rec.Trials)
	if err != nil {
		return o, err
	}
	if failed == nil && !slices.ContainsFunc(o.Networks, func(n Network) bool { return len(n.Bursts) > 0 }) {
		why := "there were no pods for them"
		if all := o.Networks[0].Failures; len(all) > 0 {
			why = all[0].Why
		}
		failed = fmt.Errorf("%w: %s", ErrNothing, why)
	}
	rec.End(failed, ctx.Err() != nil)
	o.Finished = rec.Run.Finished
	return o, failed
}

// Trial is what the build measured, or what failed in it.
func (f *fleet) Trial() (t result.Trial, keep bool, err error) {
	t, err = f.tally.settle(f.clients)
	return t, len(t.Bursts.Round) > 0 || t.Failed != "" || t.Fleet.Failed > 0, err // otherwise it was interrupted
}
