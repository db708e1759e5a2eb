// Package pairs measures every ordered pair of a testbed's nodes against each other, one pair at a time, in rounds of random
// order: what is slow about one node, or between two, stands out from the others.
package pairs

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"netdelta/experiment/record"
	"netdelta/result"
	"netdelta/testbed"
)

// MaxNodes is how many nodes may be paired: the pairs are their square.
const MaxNodes = 100

// Config is what to measure, and where.
type Config struct {
	Driver testbed.Provider
	// Spec is the testbed of each network, with one pod on each node. The network is filled in.
	Spec testbed.Spec
	record.Load
	// Rounds is how often each pair is measured in each build.
	Rounds int
	// Margin is the share by which a node must differ from the others to be called odd.
	Margin float64
}

// Check says what is wrong with a configuration.
func (c Config) Check() error {
	switch {
	case c.Spec.Nodes < 2 || c.Spec.Nodes > MaxNodes:
		return fmt.Errorf("%d nodes: pairs need 2 to %d", c.Spec.Nodes, MaxNodes)
	case c.Rounds < 1:
		return fmt.Errorf("%d rounds: need at least 1", c.Rounds)
	case c.Margin <= 0 || c.Margin >= 1:
		return fmt.Errorf("--margin %v: need a share between 0 and 1", c.Margin)
	}
	return c.CheckLoad()
}

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
