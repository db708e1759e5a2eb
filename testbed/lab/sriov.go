package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/vishvananda/netlink"

	"netdelta/network"
)

const (
	// cardPatience is how long a card may take for what it is asked: to agree on a link, to make functions. Emulated ones, on a
	// busy machine, take seconds.
	cardPatience = 2 * time.Minute
	cardPause    = 10 * time.Millisecond
	// travelling are the names of devices on their way from one namespace to another.
	travellingCard     = "ndcard"
	travellingFunction = "ndfunction"
)

// card is a network card that a node has.
type card struct {
	cardFound
	cards  *cards
	op     network.Card
	node   *space
	origin origin
	// mtu is what the card had; away says that it has left its origin.
	mtu  int
	away bool
	done bool
}

// takeCard gives a card to a node.
func (b *builder) takeCard(op network.Card) error {
	node, err := b.in(op.In)
	if err != nil {
		return err
	}
	found, err := b.cards.take(op.Functions)
	if err != nil {
		return err
	}
	c := &card{cardFound: found, cards: b.cards, op: op, node: node}
	b.companions = append(b.companions, c)
	if err := c.origin.open(); err != nil {
		return err
	}
	link, err := c.origin.card(c.name)
	if err != nil {
		return err
	}
	c.mtu = link.Attrs().MTU
	if note := emulated(); note != "" {
		b.note(note)
	}
	if err := c.origin.nl.LinkSetMTU(link, int(op.MTU)); err != nil {
		return fmt.Errorf("set the MTU of the network card %s: %w", c.name, err)
	}
	if err := c.send(link.Attrs().Index, travellingCard, node, op.Name, func() { c.away = true }); err != nil {
		return fmt.Errorf("give the network card %s to %s: %w", c.name, op.In, err)
	}
	if err := node.up(op.Name); err != nil {
		return err
	}
	// Functions that are made while the card has no link keep asking for it.
	if err := c.await(func() (bool, error) { return node.isUp(op.Name) }); err != nil {
		return fmt.Errorf("wait for the link of the network card %s: %w", c.name, err)
	}
	return c.functions(op.Functions)
}

// functions makes so many virtual functions, 0 none any more.
func (c *card) functions(count int) error {
	if err := os.WriteFile(filepath.Join(c.folder, "sriov_numvfs"), []byte(strconv.Itoa(count)), 0); err != nil {
		return fmt.Errorf("make %d virtual functions of the network card %s: %w", count, c.name, err)
	}
	return nil
}

// send moves a device from its origin to another namespace, under another name. moved is called when it has left.
func (c *card) send(index int, on string, to *space, name string, moved func()) error {
	// The new name may be taken here, the old one there.
	if err := c.origin.nl.LinkSetName(indexed(index), on); err != nil {
		return err
	}
	if err := to.ns.WithFD(func(fd int) error { return c.origin.nl.LinkSetNsFd(indexed(index), fd) }); err != nil {
		return err
	}
	moved()
	to.forget()
	i, err := to.link(on)
	if err != nil {
		return err
	}
	if err := to.nl.LinkSetName(indexed(i), name); err != nil {
		return err
	}
	to.forget()
	return nil
}

// await asks until the answer is yes or patience ends.
func (c *card) await(is func() (bool, error)) error {
	yes, err := until(context.Background(), cardPatience, cardPause, is)
	if err == nil && !yes {
		return fmt.Errorf("nothing came within %s", cardPatience)
	}
	return err
}

// isUp tells whether a device has its link.
func (s *space) isUp(name string) (bool, error) {
	l, err := s.device(name)
	if err != nil {
		return false, err
	}
	return l.Attrs().OperState == netlink.OperUp, nil
}

// takeFunction gives a virtual function to a pod.
func (b *builder) takeFunction(op network.Function) error {
	pod, err := b.in(op.In)
	if err != nil {
		return err
	}
	var of *card
	for _, c := range b.companions {
		if one, is := c.(*card); is && one.op.Device == op.Card {
			of = one
		}
	}
	if of == nil {
		return fmt.Errorf("%s is no card of this lab", op.Card)
	}
	name := ""
	if err := of.await(func() (bool, error) {
		entries, err := filepath.Glob(filepath.Join(of.folder, fmt.Sprintf("virtfn%d", op.Number), "net", "*"))
		if len(entries) > 0 {
			name = filepath.Base(entries[0])
		}
		return name != "", err
	}); err != nil {
		return fmt.Errorf("wait for virtual function %d of the network card %s, whose driver makes its device: %w", op.Number, of.name, err)
	}
	link, err := of.origin.nl.LinkByName(name)
	if err != nil {
		return fmt.Errorf("find virtual function %d of the network card %s: %w", op.Number, of.name, err)
	}
	if err := of.send(link.Attrs().Index, travellingFunction, pod, op.Name, func() {}); err != nil {
		return fmt.Errorf("give the virtual function %s to %s: %w", name, op.In, err)
	}
	i, err := pod.link(op.Name)
	if err != nil {
		return err
	}
	if err := errors.Join(pod.nl.LinkSetHardwareAddr(indexed(i), op.MAC[:]), pod.nl.LinkSetMTU(indexed(i), int(op.MTU)), pod.nl.LinkSetUp(indexed(i))); err != nil {
		return fmt.Errorf("set up the virtual function %s in %s: %w", name, op.In, err)
	}
	if err := of.await(func() (bool, error) { return pod.isUp(op.Name) }); err != nil {
		return fmt.Errorf("wait for the link of %s: %w", op.Device, err)
	}
	return nil
}

// Close implements io.Closer: the functions end, wherever they are, and the card goes back as it came.
func (c *card) Close() error {
	if c.done {
		return nil
	}
	c.done = true
	err := c.functions(0)
	if c.origin.nl != nil {
		err = errors.Join(err, c.giveBack())
	}
	if err := errors.Join(err, c.origin.close()); err != nil {
		// It is not as it was, and no other lab should get it.
		return fmt.Errorf("give back the network card %s: %w", c.name, err)
	}
	c.cards.giveBack(c.folder)
	return nil
}

// giveBack brings the card back under its own name, down, with its own MTU.
func (c *card) giveBack() error {
	if c.away {
		c.node.forget()
		for _, name := range []string{c.op.Name, travellingCard} {
			i, err := c.node.link(name)
			if err != nil {
				continue // it has the other one
			}
			err = c.origin.ns.WithFD(func(fd int) error {
				return errors.Join(
					c.node.nl.LinkSetDown(indexed(i)), c.node.nl.LinkSetName(indexed(i), travellingCard), c.node.nl.LinkSetNsFd(indexed(i), fd))
			})
			if err != nil {
				return err
			}
			c.away = false
			break
		}
		if c.away {
			return fmt.Errorf("it is not in %s any more", c.node.name)
		}
	}
	for _, name := range []string{travellingCard, c.name} {
		link, err := c.origin.nl.LinkByName(name)
		if err != nil {
			continue
		}
		return errors.Join(c.origin.nl.LinkSetName(link, c.name), c.origin.nl.LinkSetMTU(link, c.mtu))
	}
	return fmt.Errorf("it is not where it came from")
}
