package leak

import (
	"errors"
	"fmt"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"netdelta/internal/netns"
)

// Tripwire tells when a network namespace has ended. It is one end of a veth pair, in a namespace of its own; the other end
// is in the namespace that is watched, with which it ends, and this end with it. It does not hold the other namespace.
type Tripwire struct {
	ns *netns.Namespace
	nl *netlink.Handle
}

const wire = "wire"

// NewTripwire watches the namespace that a process is in.
func NewTripwire(pid int) (*Tripwire, error) {
	target, err := netns.Of(pid)
	if err != nil {
		return nil, err
	}
	w := &Tripwire{}
	w.ns, err = netns.New(func() error {
		var err error
		if w.nl, err = netlink.NewHandle(unix.NETLINK_ROUTE); err != nil {
			return err
		}
		return target.WithFD(func(fd int) error {
			a := netlink.NewLinkAttrs()
			a.Name = wire
			v := netlink.NewVeth(a)
			v.PeerName, v.PeerNamespace = wire, netlink.NsFd(fd)
			return w.nl.LinkAdd(v)
		})
	})
	if err := errors.Join(err, target.Close()); err != nil {
		return nil, errors.Join(fmt.Errorf("stretch a tripwire into the namespace of process %d: %w", pid, err), w.Close())
	}
	return w, nil
}

// Wait returns when the namespace has ended, with an error when it is there still after the given time.
func (w *Tripwire) Wait(patience time.Duration) error {
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		_, err := w.nl.LinkByName(wire)
		var gone netlink.LinkNotFoundError
		if errors.As(err, &gone) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("look at a tripwire: %w", err)
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("a network namespace is there still after %s", patience)
		}
	}
}

// Close removes the tripwire from the namespace, if that lives still.
func (w *Tripwire) Close() error {
	if w.nl != nil {
		w.nl.Close()
	}
	if w.ns == nil {
		return nil
	}
	return w.ns.Close()
}
