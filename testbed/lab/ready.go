package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"netdelta/network"
)

const (
	// readyPatience is how long the kernel may take to notice that links are up; usually it is a millisecond.
	readyPatience = 10 * time.Second
	readyPause    = 500 * time.Microsecond
)

// ready waits until all devices are up. Until then they drop what they should send, bridges don't forward, and the first
// request of a trial would come a second late. Then it waits until all IPv6 addresses take packets, for the same reason.
func (b *builder) ready(ctx context.Context) error {
	if err := b.agree(ctx, lacpPatience); err != nil {
		return err
	}
	deadline := time.Now().Add(readyPatience)
	for where, names := range b.expected {
		down := func(s *space) (string, error) { return s.firstDown(names) }
		if err := b.await(ctx, where, deadline, down); err != nil {
			return err
		}
	}
	for where, addresses := range b.addressed {
		deaf := func(s *space) (string, error) { return s.firstDeaf(addresses) }
		if err := b.await(ctx, where, deadline, deaf); err != nil {
			return err
		}
	}
	return nil
}

// await asks a namespace what is not ready in it until nothing is, or the deadline has passed.
func (b *builder) await(ctx context.Context, where network.Space, deadline time.Time, lacks func(*space) (string, error)) error {
	s, err := b.in(where)
	if err != nil {
		return err
	}
	var lacking string
	ready, err := until(ctx, time.Until(deadline), readyPause, func() (bool, error) {
		var err error
		lacking, err = lacks(s)
		return lacking == "", err
	})
	if err == nil && !ready {
		return fmt.Errorf("%s in %s did not come up within %s", lacking, s.name, readyPatience)
	}
	return err
}

// until asks, with pauses, until the answer is yes, there is an error, or patience ends. It asks at least once.
func until(ctx context.Context, patience, pause time.Duration, is func() (bool, error)) (bool, error) {
	for deadline := time.Now().Add(patience); ; time.Sleep(pause) {
		yes, err := is()
		if yes || err != nil {
			return yes, err
		}
		if err := ctx.Err(); err != nil {
			return false, err
		}
		if time.Now().After(deadline) {
			return false, nil
		}
	}
}

// firstDeaf is one of the addresses that take no packets yet, "" if all do. The kernel joins the groups in which neighbours
// ask for an address before it takes packets for it.
func (s *space) firstDeaf(addresses map[netip.Addr]bool) (string, error) {
	local, err := s.local()
	if err != nil {
		return "", err
	}
	for a := range addresses {
		if !local[a] {
			return "address " + a.String(), nil
		}
	}
	return "", nil
}

// firstDown is one of the named devices that is not up, "" if all are.
func (s *space) firstDown(names map[string]bool) (string, error) {
	links, err := s.links()
	if err != nil {
		return "", err
	}
	up := 0
	for _, l := range links {
		a := l.Attrs()
		if !names[a.Name] {
			continue
		}
		// The kernel never learns the state of ipvlan links, which are up as soon as their parent is.
		stateless := l.Type() == "ipvlan" && a.OperState == netlink.OperUnknown && a.RawFlags&unix.IFF_LOWER_UP != 0
		if a.OperState != netlink.OperUp && !stateless {
			return "device " + a.Name, nil
		}
		up++
	}
	if up != len(names) {
		return "", fmt.Errorf("%s has %d of the %d devices that were made", s.name, up, len(names))
	}
	return "", nil
}

// companions are the parts of a network that the kernel does not remove with its namespaces: processes, borrowed network cards, state
// of plugins. They are in the order in which they were made. Their Close is called before the network is torn down; it is idempotent,
// and also works where the companion was never started.
type companions []io.Closer

// starter is a companion that is to be started once all devices of the network are there.
type starter interface {
	start(ctx context.Context, l *Testbed) error
}

// start starts all.
func (all companions) start(ctx context.Context, l *Testbed) error {
	for _, c := range all {
		if s, ok := c.(starter); ok {
			if err := s.start(ctx, l); err != nil {
				return err
			}
		}
	}
	return nil
}

// close ends all, the last one first.
func (all companions) close() error {
	var err error
	for _, c := range slices.Backward(all) {
		err = errors.Join(err, c.Close())
	}
	return err
}
