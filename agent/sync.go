package agent

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"netdelta/engine"
	"netdelta/internal/clock"
)

// SyncResult is what one agent reports of a burst that many agents begin together.
type SyncResult struct {
	Burst engine.Burst `json:"burst"`
	// Totals hold all of the agent's latencies since the last such burst as one histogram: they are merged before they are sent.
	Totals engine.Totals `json:"totals"`
	// Late is how long after the agreed instant the measured part began, less its warm-up, by the agent's own clock.
	Late time.Duration `json:"late_ns"`
	// Spare is how long before that instant the agent was ready; negative where it was told too late.
	Spare time.Duration `json:"spare_ns"`
}

// Offset is the difference of an agent's clock and this program's. Both are monotonic, with any zero.
type Offset struct {
	// Ahead is the agent's clock less this program's; Error is how far it may be off: half of what the exchange took.
	Ahead, Error time.Duration
}

// There is a moment of this program's clock by the agent's.
func (o Offset) There(here time.Duration) time.Duration { return here + o.Ahead }

// Now is this program's clock, as Offset means it.
func Now() time.Duration { return clock.Now() }

// Reading is a far program's monotonic clock when it had read a request, and when it answered.
type Reading struct {
	Received time.Duration `json:"received_ns"`
	Answered time.Duration `json:"answered_ns"`
}

// Offset reads the agent's clock tries times, as CompareClocks does.
func (a *Agent) Offset(ctx context.Context, tries int) (Offset, error) {
	return CompareClocks(tries, func() (Reading, error) {
		return invoke[Reading](ctx, a, opClock, nil, a.late())
	})
}

// CompareClocks reads a far clock tries times and takes the exchange that took least: what held up the others is in their error. The
// error is that of ask.
func CompareClocks(tries int, ask func() (Reading, error)) (Offset, error) {
	var best Offset
	for i := range max(tries, 1) {
		sent := Now()
		r, err := ask()
		if err != nil {
			return Offset{}, err
		}
		if o := offset(sent, r, Now()); i == 0 || o.Error < best.Error {
			best = o
		}
	}
	return best, nil
}

// offset is what four readings tell, two of either clock: the way there and the way back are taken to be equally long.
func offset(sent time.Duration, r Reading, received time.Duration) Offset {
	return Offset{
		Ahead: ((r.Received - sent) + (r.Answered - received)) / 2,
		Error: ((received - sent) - (r.Answered - r.Received) + 1) / 2,
	}
}

// BurstAt has a client's session run a burst from an agreed instant on, by the agent's own clock (Offset.There), and fetches what it
// measured. The burst's deadline counts from its beginning. Wait is how far away the instant is at most. Errors match ErrHung as those
// of Burst do.
func (a *Agent) BurstAt(ctx context.Context, session int, at time.Duration, spec engine.BurstSpec, wait time.Duration) (SyncResult, error) {
	return unansweredHung(invoke[SyncResult](ctx, a, opBurstAt, sessionArgs{Session: session, At: at, Spec: spec}, wait+spec.Deadline+a.late()))
}

// burstAt waits for its instant, runs the burst and collects.
func (s *server) burstAt(a sessionArgs) (SyncResult, error) {
	c, err := s.client(a.Session)
	if err != nil {
		return SyncResult{}, err
	}
	// An agent's garbage is otherwise left until there is much of it, which hundreds of agents on one machine can't afford. Here it
	// is collected while there is nothing to do but wait.
	runtime.GC()
	spare := a.At - Now()
	if err := sleepUntil(a.At); err != nil {
		return SyncResult{}, err
	}
	b, err := c.Burst(a.Spec)
	if err != nil {
		return SyncResult{}, hung(err)
	}
	began := Now() - time.Since(b.Start)
	totals, err := c.Collect(false)
	if err != nil {
		return SyncResult{}, err
	}
	return SyncResult{Burst: b, Totals: totals, Late: began - a.At - a.Spec.Warmup, Spare: spare}, nil
}

// sleepUntil waits in the kernel for a moment of the monotonic clock: the runtime's timers come too late when the machine is
// busy, and a thread's own by its slack.
func sleepUntil(at time.Duration) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) // without it the start is 50 us later
	defer func() { _ = unix.Prctl(unix.PR_SET_TIMERSLACK, 0, 0, 0, 0) }()
	until := unix.NsecToTimespec(max(at, 0).Nanoseconds()) // the kernel knows no moment before it was booted
	for {
		err := unix.ClockNanosleep(unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, &until, nil)
		if err == nil {
			return nil
		}
		if !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("wait for the common start: %w", err)
		}
	}
}
