package kube

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"netdelta/testbed/kube/client"
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
		if pause(ctx, persistPause) != nil {
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

// fetch calls get as persist does.
func fetch[T any](ctx context.Context, get func() (T, error)) (found T, err error) {
	err = persist(ctx, func() (err error) {
		found, err = get()
		return err
	})
	return found, err
}

// create has the API server make an object, until it answers. After a try without an answer, an object of that name that exists is the
// one that was asked for.
func create[T metav1.Object, L any](ctx context.Context, r client.Resource[T, L], object T) (T, error) {
	tries := 0
	return fetch(ctx, func() (T, error) {
		made, err := r.Create(ctx, object, metav1.CreateOptions{})
		if tries++; tries > 1 && apierrors.IsAlreadyExists(err) {
			return r.Get(ctx, object.GetName(), metav1.GetOptions{})
		}
		return made, err
	})
}

// pause waits for d. The error is the cause of the end of ctx.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
