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
	s := result.Strategy{Name: result.StrategyFleet, Burst: c.Volley, Clients: c.Clients, Servers: c.Servers}
	if err := rec.Begin(s, record.Cells(c.Networks, c.Workload.Name, params, len(c.Networks) > 1)); err != nil {
		return Outcome{}, err
	}
	leads := map[string]time.Duration{} // by cell
	var failed error
	for build := range c.Builds {
		if rec.HasBuild(build) {
			continue
		}
		if failed = errors.Join(runBuild(ctx, c, rec, leads, build), ctx.Err()); failed != nil {
			break
		}
	}
	o, err := Of(rec.Run, rec.Trials)
	if err != nil {
		return o, err
	}
	if failed == nil && !slices.ContainsFunc(o.Networks, func(n Network) bool { return len(n.Volleys) > 0 }) {
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

// runBuild sets all networks up, has them fire and removes them. A network that fails is left out of the build.
func runBuild(ctx context.Context, c Config, rec *record.Record, leads map[string]time.Duration, build int) (err error) {
	var fleets, ready []*fleet
	defer func() {
		for _, f := range fleets {
			leads[f.cell.ID] = f.tally.lead
			err = errors.Join(err, f.keep(rec), f.close())
		}
	}()
	rng := rand.New(rand.NewPCG(c.Seed, uint64(build)))
	for _, i := range rng.Perm(len(rec.Run.Cells)) {
		cell := rec.Run.Cells[i]
		f, err := open(ctx, c, cell, build, leads[cell.ID])
		fleets = append(fleets, f)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			c.log("build %d: %v", build+1, err)
			continue
		}
		ready = append(ready, f)
		c.log("build %d of %d, %s: %d of %d clients armed after %v, pods after %v", build+1, c.Builds, cell.Network,
			f.ready(), c.Clients, f.tally.fleet.Connected.Round(time.Millisecond), f.tally.fleet.Pods.Round(time.Millisecond))
	}
	for round := range c.Volleys {
		for _, i := range rng.Perm(len(ready)) {
			ready[i].fire(ctx, round)
			if err := ctx.Err(); err != nil {
				return err
			}
		}
	}
	return nil
}

// keep records what the build measured, or what failed in it.
func (f *fleet) keep(rec *record.Record) error {
	t, err := f.tally.settle(f.clients)
	if err != nil || len(t.Bursts.Round) == 0 && t.Failed == "" && t.Fleet.Failed == 0 {
		return err // without an error it was interrupted
	}
	return rec.Add(f.cell, t)
}
