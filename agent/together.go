package agent

import (
	"context"
	"sync"
	"time"

	"netdelta/engine"
)

// SyncClient is a client's session that begins bursts together with sessions of other agents.
type SyncClient struct {
	Agent   *Agent
	Session int
	// Offset is how the agent's clock stood to this program's when ReadClock read it last.
	Offset Offset

	read time.Duration // when the offset was read
}

const (
	// readings is how often a clock is read, for the best of them.
	readings = 8
	// offsetFor is how long an offset holds: clocks of two machines drift by some 20 us in a second.
	offsetFor = 10 * time.Second
)

// ReadClock finds how the agent's clock stands to this program's, unless what it found last still holds.
func (c *SyncClient) ReadClock(ctx context.Context) (err error) {
	if c.read != 0 && Now()-c.read < offsetFor {
		return nil
	}
	c.Offset, err = c.Agent.Offset(ctx, readings)
	c.read = Now()
	return err
}

const (
	// leadLeast is how long before the common instant clients are told, at least; each client adds leadEach, since they are told one
	// after another and tidy up when they are told.
	leadLeast = 200 * time.Millisecond
	leadEach  = 2 * time.Millisecond
	// leadMost bounds what it grows to where clients were told too late.
	leadMost = 20 * time.Second
)

// LeadFor is how long before a common instant so many clients are to be told of it.
func LeadFor(clients int) time.Duration { return leadLeast + time.Duration(clients)*leadEach }

// LongerLead is the lead for the next burst where one of the clients had the given time to spare, which is negative.
func LongerLead(lead, spare time.Duration) time.Duration { return min(2*(lead-spare), leadMost) }

// BurstTogether has clients whose clocks were read run a burst that begins lead from now. It hands what came of each to took, one at a
// time, as it comes: the client's index, and its result or its error. It returns how long before the common instant the last of them
// was told, of those that answered; where it is negative they did not begin together.
func BurstTogether(ctx context.Context, clients []*SyncClient, spec engine.BurstSpec, lead time.Duration, took func(i int, got SyncResult, err error)) (spare time.Duration) {
	spare = lead
	common := Now() + lead
	var mu sync.Mutex
	var all sync.WaitGroup
	for i, c := range clients {
		all.Go(func() {
			got, err := c.Agent.BurstAt(ctx, c.Session, c.Offset.There(common), spec, lead)
			// One at a time: a histogram that took decodes is as large as all that is kept of a burst.
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				spare = min(spare, got.Spare)
			}
			took(i, got, err)
		})
	}
	all.Wait()
	return spare
}
