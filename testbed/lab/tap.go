package lab

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"netdelta/network"
	"netdelta/testbed"
	"netdelta/testbed/nsmonitor"
)

// tap samples the packets of some namespaces.
type tap struct {
	of *taps

	mu      sync.Mutex
	sockets []*nsmonitor.Sampler // nil once closed
}

var _ testbed.Tap = (*tap)(nil)

// errTapClosed is the error of a tap that was closed.
var errTapClosed = errors.New("the tap is closed")

// Tap implements testbed.Observer: one packet socket in each namespace. Nothing of it outlives the lab, or a swap of its
// network.
func (l *Testbed) Tap(ctx context.Context, spaces []network.Space) (testbed.Tap, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	fail := func(err error) (testbed.Tap, error) {
		return nil, fmt.Errorf("sample packets: %w", err)
	}
	if l.closed {
		return fail(ErrClosed)
	}
	t := &tap{of: &l.taps}
	l.taps.add(t)
	for i, where := range spaces {
		if slices.Contains(spaces[:i], where) {
			continue
		}
		s := l.spaces[where]
		err := ctx.Err()
		if err == nil && s == nil {
			err = fmt.Errorf("the lab has no namespace %s", where)
		}
		var socket *nsmonitor.Sampler
		if err == nil {
			socket, err = s.tap(where)
		}
		if err != nil {
			return fail(errors.Join(err, t.Close()))
		}
		t.sockets = append(t.sockets, socket)
	}
	return t, nil
}

// tap opens a packet socket in the namespace.
func (s *space) tap(where network.Space) (*nsmonitor.Sampler, error) {
	g, err := s.counts()
	if err != nil {
		return nil, err
	}
	socket := nsmonitor.NewSampler(where, g.NameOf)
	if err := s.ns.Do(socket.Open); err != nil {
		return nil, fmt.Errorf("in %s: %w", s.name, err)
	}
	return socket, nil
}

// Packets implements testbed.Tap.
func (t *tap) Packets() (seen []testbed.Packet, missed int, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.sockets == nil {
		return nil, 0, fmt.Errorf("read the sampled packets: %w", errTapClosed)
	}
	for _, s := range t.sockets {
		packets, lost, err := s.Read()
		if err != nil {
			return nil, 0, fmt.Errorf("read the sampled packets: %w", err)
		}
		seen, missed = append(seen, packets...), missed+lost
	}
	return seen, missed, nil
}

// Close implements testbed.Tap. It does not wait until the sockets are gone, for the kernel takes many milliseconds over
// it; what the kernel does first, before it waits, is to show the socket no more packets.
func (t *tap) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.of.remove(t)
	begun := make(chan struct{}, len(t.sockets))
	for _, s := range t.sockets {
		t.of.closing.Go(func() {
			begun <- struct{}{}
			t.of.note(s.Close())
		})
	}
	for range t.sockets {
		<-begun
	}
	t.sockets = nil
	return nil
}

// taps are the lab's open ones, and the ones that are being closed.
type taps struct {
	closing sync.WaitGroup

	mu   sync.Mutex
	open map[*tap]bool
	errs []error
}

func (t *taps) add(one *tap) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open == nil {
		t.open = map[*tap]bool{}
	}
	t.open[one] = true
}

func (t *taps) remove(one *tap) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.open, one)
}

func (t *taps) note(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil {
		t.errs = append(t.errs, err)
	}
}

// finish closes all taps and waits until they are gone.
func (t *taps) finish() error {
	t.mu.Lock()
	left := slices.Collect(maps.Keys(t.open))
	t.mu.Unlock()
	for _, one := range left {
		t.note(one.Close())
	}
	t.closing.Wait()
	t.mu.Lock()
	defer t.mu.Unlock()
	err := errors.Join(t.errs...)
	t.errs = nil
	return err
}
