package pairs

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"netdelta/experiment/record"
	"netdelta/result"
)

// Head implements record.Strategy.
func (c Config) Head() result.Run {
	return result.Run{
		Seed: c.Seed, Margin: c.Margin, Strategy: &result.Strategy{Name: result.StrategyPairs, Burst: c.Burst},
		Cells: record.Cells(c.Networks, c.Workload.Name, c.Params, false),
	}
}

// Measure implements record.Strategy.
func (c Config) Measure(ctx context.Context, rec *record.Record) error {
	builds := c.BuildsOf(rec)
	open := func(ctx context.Context, cell result.Cell, build int) (*mesh, error) {
		return open(ctx, c, builds, cell, build)
	}
	err := record.Measure(ctx, builds, open, c.rounds)
	if err != nil || slices.ContainsFunc(rec.Trials, func(t result.Trial) bool { return len(t.Bursts.Round) > 0 }) {
		return err
	}
	why := "no pair of nodes could be connected"
	if all := Of(rec.Run, rec.Trials).Networks[0].Failures; len(all) > 0 {
		why = all[0].Why
	}
	return fmt.Errorf("%w: %s", record.ErrNothing, why)
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
