package fleet

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"netdelta/experiment/record"
	"netdelta/result"
)

// Head implements record.Strategy.
func (c Config) Head() result.Run {
	params := c.Params
	params.Clients = c.Clients
	return result.Run{
		Seed:     c.Seed,
		Strategy: &result.Strategy{Name: result.StrategyFleet, Burst: c.Burst, Clients: c.Clients, Servers: c.Servers},
		Cells:    record.Cells(c.Networks, c.Workload.Name, params, len(c.Networks) > 1),
	}
}

// Measure implements record.Strategy: networks stand side by side in each build and fire in turn, in an order drawn afresh for each
// round. A network that could not be set up in a build is among its failures.
func (c Config) Measure(ctx context.Context, rec *record.Record) error {
	builds := c.BuildsOf(rec)
	leads := map[string]time.Duration{} // by cell
	open := func(ctx context.Context, cell result.Cell, build int) (*fleet, error) {
		return open(ctx, c, builds, cell, build, leads[cell.ID])
	}
	err := record.Measure(ctx, builds, open, func(ctx context.Context, rng *rand.Rand, ready []*fleet) error {
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
	if err != nil || slices.ContainsFunc(rec.Trials, func(t result.Trial) bool { return len(t.Bursts.Round) > 0 }) {
		return err
	}
	why := "there were no pods for the clients"
	if o, err := Of(rec.Run, rec.Trials); err == nil && len(o.Networks[0].Failures) > 0 {
		why = o.Networks[0].Failures[0].Why
	}
	return fmt.Errorf("%w: %s", record.ErrNothing, why)
}

// Trial is what the build measured, or what failed in it.
func (f *fleet) Trial() (t result.Trial, keep bool, err error) {
	t, err = f.tally.settle(f.clients)
	return t, len(t.Bursts.Round) > 0 || t.Failed != "" || t.Fleet.Failed > 0, err // otherwise it was interrupted
}
