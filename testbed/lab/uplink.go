package lab

import (
	"errors"
	"fmt"

	"netdelta/network"
)

// uplink is a network card of this machine that a node has as its port.
type uplink struct {
	name   string // in its origin
	op     network.Uplink
	node   *space
	origin origin
	away   bool
	done   bool
}

// uplink gives the card that the lab was opened with to its node.
func (b *builder) uplink(op network.Uplink) (err error) {
	if b.card == "" {
		return errors.New("this lab was opened without a network card for its node")
	}
	u := &uplink{name: b.card, op: op}
	b.companions = append(b.companions, u)
	if u.node, err = b.in(op.In); err != nil {
		return err
	}
	if err := u.origin.open(); err != nil {
		return err
	}
	link, err := u.origin.card(u.name)
	if err != nil {
		return err
	}
	card := indexed(link.Attrs().Index)
	// It gets its name where it is going: here another may have it.
	err = errors.Join(u.origin.nl.LinkSetDown(card), u.origin.nl.LinkSetMTU(card, int(op.MTU)))
	if link.Type() != "ipvlan" { // which has the address of the device below it, and no other
		err = errors.Join(err, u.origin.nl.LinkSetHardwareAddr(card, op.MAC[:]))
	}
	if err == nil {
		err = u.node.ns.WithFD(func(fd int) error { return u.origin.nl.LinkSetNsFd(card, fd) })
	}
	if err != nil {
		return fmt.Errorf("give the network card %s to %s: %w", u.name, op.In, err)
	}
	u.away = true
	u.node.forget()
	i, err := u.node.link(u.name)
	if err != nil {
		return err
	}
	if u.name != op.Name {
		if err := u.node.nl.LinkSetName(indexed(i), op.Name); err != nil {
			return fmt.Errorf("name the network card %s in %s: %w", u.name, op.In, err)
		}
		u.node.forget()
	}
	b.expect(op.Device)
	return u.node.up(op.Name)
}

// Close implements io.Closer: the card goes back, down and under its own name.
func (u *uplink) Close() error {
	if u.done {
		return nil
	}
	u.done = true
	var err error
	if u.away {
		u.node.forget()
		i, found := u.node.link(u.op.Name)
		if err = found; err == nil {
			card := indexed(i)
			err = errors.Join(u.node.nl.LinkSetDown(card), u.node.nl.LinkSetName(card, u.name),
				u.origin.ns.WithFD(func(fd int) error { return u.node.nl.LinkSetNsFd(card, fd) }))
		}
	}
	if err := errors.Join(err, u.origin.close()); err != nil {
		return fmt.Errorf("give back the network card %s: %w", u.name, err)
	}
	return nil
}
