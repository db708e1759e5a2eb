package pairs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"netdelta/experiment/record"
	"netdelta/result"
)

// ErrNothing says that no pair could be measured.
var ErrNothing = errors.New("no pair of nodes could be measured")

// Run measures the builds that the record lacks. The outcome and the record hold what was measured also after an error of ctx; the
// error matches ErrNothing where nothing was measured at all.
func Run(ctx context.Context, c Config) (Outcome, error) {
	rec := cmp.Or(c.Record, &record.Record{})
	if err := c.Check(); err != nil {
		return Outcome{}, err
	}
	if c.Record == nil {
		rec.Run.Testbed, rec.Run.Seed = c.Driver.Kind(), c.Seed
	}
	cells := record.Cells(c.Networks, c.Workload.Name, c.Params, false)
	if err := rec.Begin(result.Strategy{Name: result.StrategyPairs, Burst: c.Burst}, cells); err != nil {
		return Outcome{}, err
	}
	var failed error
	for build := range c.Builds {
		if rec.HasBuild(build) {
			continue
		}
		if failed = errors.Join(runBuild(ctx, c, rec, build), ctx.Err()); failed != nil {
			break
		}
	}
	o := Of(rec.Run, rec.Trials)
	if failed == nil && !slices.ContainsFunc(o.Networks, func(n Network) bool { return len(n.Pairs) > 0 }) {
		failed = ErrNothing
		if all := o.Networks[0].Failures; len(all) > 0 {
			failed = fmt.Errorf("%w: %s", ErrNothing, all[0].Why)
		}
	}
	rec.End(failed, ctx.Err() != nil)
	o.Finished = rec.Run.Finished
	return o, failed
}

// runBuild sets all networks up, measures all their pairs in rounds of random order, and removes them.
func runBuild(ctx context.Context, c Config, rec *record.Record, build int) (err error) {
	var meshes []*mesh
	defer func() {
		for _, m := range meshes {
			err = errors.Join(err, m.keep(rec), m.close())
		}
	}()
	type turn struct {
		*mesh
		*connection
	}
	var turns []turn
	rng := rand.New(rand.NewPCG(c.Seed, uint64(build)))
	for _, i := range rng.Perm(len(rec.Run.Cells)) {
		cell := rec.Run.Cells[i]
		began := time.Now()
		m, err := open(ctx, c, cell, build)
		if m != nil {
			meshes = append(meshes, m)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			c.log("build %d: %v", build+1, err)
			continue
		}
		for _, at := range m.connections {
			turns = append(turns, turn{m, at})
		}
		c.log("build %d of %d, %s: %d pairs connected after %v", build+1, c.Builds, cell.Network, len(m.connections), time.Since(began).Round(time.Millisecond))
	}
	for round := range c.Rounds {
		rng.Shuffle(len(turns), func(i, j int) { turns[i], turns[j] = turns[j], turns[i] })
		for _, t := range turns {
			if t.trial.Pairs[t.pair].Failed != "" {
				continue
			}
			t.burst(ctx, t.connection, round)
			if err := ctx.Err(); err != nil {
				return err
			}
		}
	}
	return nil
}
