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
	"netdelta/testbed/rpc"
)

// Volley is a burst that many agents begin together, and what each is to send back of it.
type Volley struct {
	// At is when it begins, by the agent's own clock (Offset.There).
	At time.Duration
	// Spec is the burst. Its deadline counts from its beginning.
	Spec engine.BurstSpec
}

// Shot is what one agent has to say of a volley.
type Shot struct {
	Burst engine.Burst `json:"burst"`
	// Totals hold all of the agent's latencies since the last volley as one histogram: they are merged before they are sent.
	Totals engine.Totals `json:"totals"`
	// Late is how long after the agreed instant the measured part began, less its warm-up, by the agent's own clock.
	Late time.Duration `json:"late_ns"`
	// Spare is how long before that instant the agent was ready; negative where it was told too late.
	Spare time.Duration `json:"spare_ns"`
}

// Offset is how an agent's clock stands to that of this program. Both are monotonic, with any zero.
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

// clockDeadline bounds one exchange of readings.
const clockDeadline = 10 * time.Second

// Offset reads the agent's clock tries times, as CompareClocks does.
func (a *Agent) Offset(ctx context.Context, tries int) (Offset, error) {
	return CompareClocks(tries, func() (Reading, error) {
		return invoke[Reading](ctx, a, opClock, struct{}{}, clockDeadline)
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

// Fire has a client's session run a burst from an agreed instant on, and fetches what it measured. Wait is how far away the
// instant is at most. An error that matches ErrHung is as that of Burst.
func (a *Agent) Fire(ctx context.Context, session int, v Volley, wait time.Duration) (Shot, error) {
	s, err := invoke[Shot](ctx, a, opVolley, volleyArgs{session, v.At, v.Spec}, wait+v.Spec.Deadline+late)
	if errors.Is(err, rpc.ErrNoAnswer) {
		err = &hungError{err}
	}
	return s, err
}

type volleyArgs struct {
	Session int              `json:"session"`
	At      time.Duration    `json:"at_ns"`
	Spec    engine.BurstSpec `json:"spec"`
}

// volley waits for its instant, runs the burst and collects.
func (s *server) volley(a volleyArgs) (Shot, error) {
	c, err := s.client(a.Session)
	if err != nil {
		return Shot{}, err
	}
	// An agent's garbage is otherwise left until there is much of it, which hundreds of agents on one machine can't afford. Here it
	// is collected while there is nothing to do but wait.
	runtime.GC()
	spare := a.At - Now()
	if err := sleepUntil(a.At); err != nil {
		return Shot{}, err
	}
	b, err := c.Burst(a.Spec)
	if err != nil {
		return Shot{}, hung(err)
	}
	began := Now() - time.Since(b.Start)
	totals, err := c.Collect(false)
	if err != nil {
		return Shot{}, err
	}
	return Shot{Burst: b, Totals: totals, Late: began - a.At - a.Spec.Warmup, Spare: spare}, nil
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
