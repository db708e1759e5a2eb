package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"netdelta/experiment/study"
	"netdelta/internal/machine"
)

// askAgain is how often processors are asked for that another run measures on.
const askAgain = 200 * time.Millisecond

// Turn is how a program waits for others that measure on the same processors.
type Turn struct {
	Wait time.Duration // at most; not at all if it is 0
	Warn func(error)   // told before the wait, and if there can be no turns
}

// Take waits until no other program measures on the processors, and keeps them until release. begin is called before the wait: what is wrong
// with the run is said at once.
func (t Turn) Take(ctx context.Context, cpus []int, begin func() error) (release func() error, err error) {
	claim, err := machine.ClaimCPUs(cpus)
	var busy *machine.BusyError
	switch {
	case err == nil:
	case !errors.As(err, &busy):
		t.Warn(fmt.Errorf("other runs can't be kept from measuring at the same time: %w", err))
	case t.Wait <= 0:
		return nil, fmt.Errorf("%w; wait for its end by --wait, or have both measure on processors of their own by taskset", err)
	}
	if err := begin(); err != nil {
		return nil, errors.Join(err, claim.Release())
	}
	if busy == nil {
		return claim.Release, nil
	}
	t.Warn(fmt.Errorf("waiting for up to %s: %w", study.FormatDuration(t.Wait), busy))
	if claim, err = awaitTurn(ctx, cpus, t.Wait); errors.As(err, &busy) {
		err = fmt.Errorf("%w still after %s; wait longer by --wait, or have both measure on processors of their own by taskset", err, study.FormatDuration(t.Wait))
	}
	return claim.Release, err
}

// awaitTurn asks for processors until it has them.
func awaitTurn(ctx context.Context, cpus []int, patience time.Duration) (*machine.Claim, error) {
	for deadline := time.Now().Add(patience); ; {
		claim, err := machine.ClaimCPUs(cpus)
		var busy *machine.BusyError
		if !errors.As(err, &busy) || time.Now().After(deadline) {
			return claim, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(askAgain):
		}
	}
}
