package kube

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

const (
	// patience is how long an API server that does not answer is asked again: one that is restarted is back by then.
	patience = time.Minute
	// persistPause is the time between two tries.
	persistPause = 500 * time.Millisecond
)

// persist calls f again while the API server can't be asked. Anything that f is told by the API server ends it.
func persist(ctx context.Context, f func() error) error {
	var err error
	for waited := range Polling(ctx, persistPause) {
		if err = f(); err == nil || !transient(err) || waited > patience {
			return err
		}
	}
	return fmt.Errorf("%w: %w", context.Cause(ctx), err)
}

// transient says whether an error means that the API server could not be asked, or asks to be asked later, or that it cut a stream.
func transient(err error) bool {
	var op *net.OpError
	return errors.Is(err, errDropped) || errors.As(err, &op) || utilnet.IsConnectionRefused(err) || utilnet.IsConnectionReset(err) || utilnet.IsProbableEOF(err) ||
		apierrors.IsServerTimeout(err) || apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsTimeout(err)
}

// fetch calls get as persist does.
func fetch[T any](ctx context.Context, get func() (T, error)) (found T, err error) {
	err = persist(ctx, func() (err error) {
		found, err = get()
		return err
	})
	return found, err
}

// Polling yields how long it has been waited: at once, and again after each pause, until ctx ends.
func Polling(ctx context.Context, every time.Duration) iter.Seq[time.Duration] {
	return func(yield func(time.Duration) bool) {
		began := time.Now()
		for yield(time.Since(began)) {
			select {
			case <-time.After(every):
			case <-ctx.Done():
				return
			}
		}
	}
}
