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
	"netdelta/testbed"
)

// MaxClients is how many clients a fleet may have.
const MaxClients = 10_000

// Config is what to measure, and where.
type Config struct {
	// Open makes the ground of a network.
	Open func(ctx context.Context, network string, clients, servers int) (testbed.Fleet, error)
	// Load is what each client runs. The first of its networks is what the others are held against; where there are others it stands twice.
	record.Load
	// Clients fire together, at Servers; each server has its share of them.
	Clients, Servers int
	// Bursts is how often each network's fleet fires in each build.
	Bursts int
	// AtOnce is how many agents are started or armed at the same time; 0 is 16.
	AtOnce int
}

// Check says what is wrong with a configuration.
func (c Config) Check() error {
	if err := c.CheckLoad(); err != nil {
		return err
	}
	switch {
	case c.Clients < 1 || c.Clients > MaxClients:
		return fmt.Errorf("%d clients: need 1 to %d", c.Clients, MaxClients)
	case c.Servers < 1 || c.Servers > c.Clients:
		return fmt.Errorf("%d servers: need 1 to %d, the number of clients", c.Servers, c.Clients)
	case c.Bursts < 1:
		return fmt.Errorf("%d bursts: need at least 1", c.Bursts)
	case c.Burst < minBurst:
		return fmt.Errorf("a burst of %v: need at least %v", c.Burst, minBurst)
	case c.Params.Conditions.Policy == result.PolicyKubernetes:
		return errors.New("--factor policy=kubernetes: a fleet makes no NetworkPolicy objects; what they cost is measured by netdelta run or pairs")
	}
	return nil
}

// minBurst is the shortest burst: clients begin within milliseconds of each other, which must be little against it.
const minBurst = 50 * time.Millisecond

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
