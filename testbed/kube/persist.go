package kube

import (
	"context"
	"errors"
	"fmt"
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
	for began := time.Now(); ; {
		err := f()
		if err == nil || !transient(err) || time.Since(began) > patience {
			return err
		}
		select {
		case <-time.After(persistPause):
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
	}
}

// transient says whether an error means that the API server could not be asked, or asks to be asked later, or that it cut a stream.
func transient(err error) bool {
	var op *net.OpError
	return errors.Is(err, errDropped) || errors.As(err, &op) || utilnet.IsConnectionRefused(err) || utilnet.IsConnectionReset(err) || utilnet.IsProbableEOF(err) ||
		apierrors.IsServerTimeout(err) || apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsTimeout(err)
}

// create has the API server make an object, until it answers. That it is there already after a try that was not answered is as good.
func create[T any](ctx context.Context, try func() (T, error), get func() (T, error)) (T, error) {
	var made T
	tries := 0
	err := persist(ctx, func() (err error) {
		made, err = try()
		if tries++; tries > 1 && apierrors.IsAlreadyExists(err) {
			made, err = get()
		}
		return err
	})
	return made, err
}
