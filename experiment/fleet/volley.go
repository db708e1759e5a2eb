package fleet

import (
	"context"
	"sync"
	"time"

	"netdelta/internal/agent"
	"netdelta/workload"
)

// Times of a volley.
const (
	// leadLeast is how long before the common instant clients are told, at least; each client adds leadEach, since they are told one
	// after another and tidy up when they are told.
	leadLeast = 50 * time.Millisecond
	leadEach  = 2 * time.Millisecond
	// leadMost bounds what it grows to where clients were told too late.
	leadMost = 20 * time.Second
	// overtime is how much longer than it should a burst may take.
	overtime = 10 * time.Second
)

func leadFor(clients int) time.Duration { return leadLeast + time.Duration(clients)*leadEach }

// fire has all clients that are left fire together, and takes in what each has measured as it comes.
func (f *fleet) fire(ctx context.Context, round int) {
	f.readClocks(ctx)
	if ctx.Err() != nil {
		return
	}
	f.sum.begin(f.build.Build, round)
	common := agent.Now() + f.lead
	spec := workload.BurstSpec{Duration: f.config.Volley, Warmup: f.config.Warmup, Deadline: f.config.Volley + f.config.Warmup + overtime}
	var all sync.WaitGroup
	spare := f.lead
	for _, c := range f.clients {
		if c.lost {
			continue
		}
		all.Go(func() {
			shot, err := c.agent.Fire(ctx, c.session, agent.Volley{At: c.offset.There(common), Spec: spec}, f.lead)
			if err != nil {
				if ctx.Err() == nil {
					f.lose(c, err)
				}
				return
			}
			// One at a time: the histogram that is decoded is as large as all that is kept of a volley.
			f.mu.Lock()
			spare = min(spare, shot.Spare)
			err = f.sum.add(c, shot)
			f.mu.Unlock()
			if err != nil {
				f.lose(c, err)
			}
		})
	}
	all.Wait()
	if ctx.Err() != nil {
		return // of a volley that was cut off nobody can say who is missing
	}
	f.sum.end()
	if spare < 0 {
		f.lead = min(2*f.lead, leadMost)
		f.config.log("network %s: a client was told %v too late; from now on all are told %v ahead", f.sum.network.Network, -spare, f.lead)
	}
}

// readClocks reads the clocks whose offsets are old.
func (f *fleet) readClocks(ctx context.Context) {
	f.each(func(_ int, c *client) error {
		if agent.Now()-c.read < offsetFor {
			return nil
		}
		err := c.readClock(ctx)
		if ctx.Err() != nil {
			return nil
		}
		return err
	})
}
