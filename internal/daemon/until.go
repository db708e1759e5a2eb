package daemon

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// FinalError is an error with which Until need not ask again.
type FinalError struct{ Err error }

// Error implements error.
func (f FinalError) Error() string { return f.Err.Error() }

// Unwrap is the error itself.
func (f FinalError) Unwrap() error { return f.Err }

// Until asks again and again until ready returns nil or a FinalError. It gives up when ctx ends, or a daemon, which may be nil: the
// error then says why, and what ready said last.
func Until(ctx context.Context, d *Daemon, every time.Duration, ready func(context.Context) error) error {
	var ended <-chan struct{}
	if d != nil {
		ended = d.Ended()
	}
	for {
		err := ready(ctx)
		if err == nil || errors.As(err, &FinalError{}) {
			return err
		}
		select {
		case <-ended:
			return d.Err()
		case <-ctx.Done():
			if d != nil {
				return fmt.Errorf("%s is not ready: %w (%w); it says: %s", d.Name(), err, context.Cause(ctx), d.Log())
			}
			return fmt.Errorf("%w (%w)", err, context.Cause(ctx))
		case <-time.After(every):
		}
	}
}
