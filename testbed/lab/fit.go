package lab

import (
	"context"
	"errors"
	"fmt"

	"netdelta/testbed"
	"netdelta/testbed/lookout"
	"netdelta/unit"
)

// Fit implements testbed.Observer. The datagram goes to the last of the pod's ports, and is sent by this program.
func (l *Testbed) Fit(ctx context.Context, from, to testbed.Pod, size unit.Bytes) error {
	l.mu.RLock()
	defer l.mu.RUnlock()
	fail := func(err error) error {
		return fmt.Errorf("send a packet of %d bytes from %s to %s: %w", int64(size), from.Name(), to.Name(), err)
	}
	a, ok1 := l.indexOf(from)
	b, ok2 := l.indexOf(to)
	switch {
	case !ok1 || !ok2:
		return fail(errors.New("they are not both pods of this testbed"))
	case l.closed:
		return fail(ErrClosed)
	case ctx.Err() != nil:
		return fail(ctx.Err())
	}
	s := l.spaces[l.plan.Pods[a].In]
	if s == nil {
		return fail(errors.New("the pod has no network namespace"))
	}
	_, last := to.Ports()
	at := l.plan.Endpoint(a, b, last)
	if err := s.ns.Do(func() error { return lookout.SendWhole(at, size) }); err != nil {
		return fail(err)
	}
	return nil
}
