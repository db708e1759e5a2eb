package fleet

import (
	"context"
	"sync"
	"time"

	"netdelta/agent"
	"netdelta/engine"
)

// Times of a burst.
const (
	// leadLeast is how long before the common instant clients are told, at least; each client adds leadEach, since they are told one
	// after another and tidy up when they are told.
	leadLeast = 200 * time.Millisecond
	leadEach  = 2 * time.Millisecond
	// leadMost bounds what it grows to where clients were told too late.
	leadMost = 20 * time.Second
	// overtime is how much longer than it should a burst may take.
	overtime = 10 * time.Second
)

func leadFor(clients int) time.Duration { return leadLeast + time.Duration(clients)*leadEach }

// triesMost is how often a burst is fired until all clients were told in time. The last one counts in any case.
const triesMost = 3

// fire has all clients that are left fire together, and takes in what they measured. A burst that did not begin together, since
// clients were told too late, is fired again with more time ahead.
func (f *fleet) fire(ctx context.Context, round int) {
	for try := range triesMost {
		f.readClocks(ctx)
		if ctx.Err() != nil {
			return
		}
		spare := f.burst(ctx, round)
		if ctx.Err() != nil {
			return // which clients are missing in an interrupted burst is not known
		}
		if spare >= 0 || try == triesMost-1 {
			f.tally.end(f.clients, f.config.Burst)
			return
		}
		f.tally.lead = min(2*(f.tally.lead-spare), leadMost)
		f.builds.Logf("network %s: a client was told of a burst %v too late: it is fired again, and from now on all are told %v ahead",
			f.cell.Network, -spare.Round(time.Millisecond), f.tally.lead.Round(time.Millisecond))
	}
}

// burst has all clients fire together once. It returns how long before the common instant the last of them was told.
func (f *fleet) burst(ctx context.Context, round int) (spare time.Duration) {
	f.tally.begin(round)
	spare = f.tally.lead
	common := agent.Now() + spare
	spec := engine.BurstSpec{Duration: f.config.Burst, Warmup: f.config.Warmup, Deadline: f.config.Burst + f.config.Warmup + overtime}
	var all sync.WaitGroup
	for _, c := range f.clients {
		if c.lost {
			continue
		}
		all.Go(func() {
			got, err := c.agent.BurstAt(ctx, c.session, c.offset.There(common), spec, f.tally.lead)
			if err == nil {
				// One at a time: the histogram that is decoded is as large as all that is kept of a burst.
				f.mu.Lock()
				spare = min(spare, got.Spare)
				err = f.tally.add(c, got)
				f.mu.Unlock()
			}
			if err != nil && ctx.Err() == nil {
				f.lose(c, err)
			}
		})
	}
	all.Wait()
	return spare
}

// readClocks reads the clocks whose offsets are old.
func (f *fleet) readClocks(ctx context.Context) {
	f.each(ctx, func(_ int, c *client) error {
		if agent.Now()-c.read < offsetFor {
			return nil
		}
		return c.readClock(ctx)
	})
}
