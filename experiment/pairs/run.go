package pairs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

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
	builds := record.Builds{Record: rec, Count: c.Builds, Seed: c.Seed, Log: c.Log}
	open := func(ctx context.Context, cell result.Cell, build int) (*mesh, error) {
		return open(ctx, c, builds, cell, build)
	}
	failed := record.Measure(ctx, builds, open, c.rounds)
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

// rounds measures all pairs of all networks, in rounds of random order.
func (c Config) rounds(ctx context.Context, rng *rand.Rand, ready []*mesh) error {
	type turn struct {
		*mesh
		*connection
	}
	var turns []turn
	for _, m := range ready {
		for _, at := range m.connections {
			turns = append(turns, turn{m, at})
		}
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
