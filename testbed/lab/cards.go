package lab

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"netdelta/internal/netns"
	"netdelta/network"
	"netdelta/testbed"
)

// CardsVariable is the environment variable that says which network cards of the machine a lab may take for networks of virtual
// functions: names of devices, with commas between them, or AllCards. Without it a lab takes none.
const CardsVariable = "NETDELTA_SRIOV"

// AllCards stands for all cards that nothing uses.
const AllCards = "idle"

// cards are those that labs of this program have taken.
type cards struct {
	mu    sync.Mutex
	taken map[string]bool // by their folder in /sys/devices
}

// cardFound is a card that a lab may take, or has taken.
type cardFound struct {
	name   string // "" where a lab has taken it
	folder string
	most   int // virtual functions
}

// allowedCards lists the cards that labs may take, in the order of their places, with those that are taken.
func (c *cards) allowedCards() ([]cardFound, error) {
	allowed := os.Getenv(CardsVariable)
	if allowed == "" {
		return nil, nil
	}
	totals, err := filepath.Glob("/sys/class/net/*/device/sriov_totalvfs")
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var found []cardFound
	for _, total := range totals {
		name := filepath.Base(filepath.Dir(filepath.Dir(total)))
		if allowed != AllCards && !slices.Contains(strings.Split(allowed, ","), name) {
			continue
		}
		folder, err := filepath.EvalSymlinks(filepath.Dir(total))
		if err != nil {
			return nil, fmt.Errorf("find the place of the network card %s: %w", name, err)
		}
		if c.taken[folder] || !idle(name, folder) {
			continue
		}
		found = append(found, cardFound{name, folder, number(total)})
	}
	for folder := range c.taken {
		found = append(found, cardFound{"", folder, number(filepath.Join(folder, "sriov_totalvfs"))})
	}
	slices.SortFunc(found, func(a, b cardFound) int { return strings.Compare(a.folder, b.folder) })
	return found, nil
}

// number reads a file that holds one; it is 0 where there is none.
func number(file string) int {
	var n int
	text, err := os.ReadFile(file)
	if err == nil {
		_, err = fmt.Sscan(string(text), &n)
	}
	if err != nil {
		return 0
	}
	return n
}

// idle tells whether nothing uses a card: it is down, has no addresses, is part of nothing and has no virtual functions, and
// this program may make some.
func idle(name, folder string) bool {
	link, err := netlink.LinkByName(name)
	if err != nil || link.Attrs().Flags&unix.IFF_UP != 0 || link.Attrs().MasterIndex != 0 {
		return false
	}
	if i, err := net.InterfaceByName(name); err != nil || addressed(i) {
		return false
	}
	functions := filepath.Join(folder, "sriov_numvfs")
	return number(functions) == 0 && unix.Access(functions, unix.W_OK) == nil
}

// addressed tells whether a device has addresses, or may have.
func addressed(i *net.Interface) bool {
	all, err := i.Addrs()
	return err != nil || len(all) > 0
}

// emulated says of network cards what a reader must know, "" of a real machine's.
func emulated() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil || !slices.Contains(strings.Fields(string(text)), "hypervisor") {
		return ""
	}
	return "the network cards are a virtual machine's, emulated unless they were handed through to it: what virtual functions cost here shows how they work, not how fast real ones are"
}

// supportsCards tells whether there are the cards that a plan takes.
func (d *Driver) supportsCards(p network.Plan) error {
	cards, functions := network.Of[network.Card](p.Ops), 0
	for _, c := range cards {
		functions = max(functions, c.Functions)
	}
	needed := len(cards)
	if needed == 0 {
		return nil
	}
	found, err := d.cards.allowedCards()
	if err != nil {
		return fmt.Errorf("look for network cards with virtual functions: %w", err)
	}
	found = slices.DeleteFunc(found, func(c cardFound) bool { return c.most < functions })
	if len(found) >= needed {
		return nil
	}
	return &testbed.UnsupportedError{
		Feature: "network " + p.Network,
		Need:    fmt.Sprintf("%d network cards with %d virtual functions each, on one link, that a lab may take (there are %d)", needed, functions, len(found)),
		Fix:     "name cards of this machine that are down and have no addresses in " + CardsVariable,
		InGuest: true, // it has emulated ones
	}
}

// take claims the first card that is free.
func (c *cards) take(functions int) (cardFound, error) {
	found, err := c.allowedCards()
	if err != nil {
		return cardFound{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, one := range found {
		if one.name == "" || one.most < functions || c.taken[one.folder] {
			continue
		}
		if c.taken == nil {
			c.taken = map[string]bool{}
		}
		c.taken[one.folder] = true
		return one, nil
	}
	return cardFound{}, &testbed.UnsupportedError{
		Feature: "a second lab on the same network cards", Need: "a network card that no other lab has taken",
		Fix: "measure networks of virtual functions in one lab at a time",
	}
}

// origin is the namespace that a card comes from, with a socket in it. The zero value is none.
type origin struct {
	ns *netns.Namespace
	nl *netlink.Handle
}

// open opens the namespace of this program.
func (h *origin) open() (err error) {
	if h.ns, err = netns.Own(); err != nil {
		return err
	}
	if h.nl, err = netlink.NewHandle(unix.NETLINK_ROUTE); err != nil {
		return fmt.Errorf("open a netlink socket: %w", err)
	}
	return nil
}

// card finds a card there.
func (h *origin) card(name string) (netlink.Link, error) {
	link, err := h.nl.LinkByName(name)
	if err != nil {
		return nil, fmt.Errorf("find the network card %s: %w", name, err)
	}
	return link, nil
}

func (h *origin) close() error {
	if h.nl != nil {
		h.nl.Close()
	}
	if h.ns == nil {
		return nil
	}
	return h.ns.Close()
}

// giveBack lets others have a card.
func (c *cards) giveBack(folder string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.taken, folder)
}

// uplink is a network card of this machine that a node has as its port.
type uplink struct {
	name   string // in its origin
	op     network.Uplink
	node   *space
	origin origin
	away   bool
	done   bool
}

// uplink gives a card that the lab was opened with to its node.
func (b *builder) uplink(op network.Uplink) (err error) {
	if op.Number >= len(b.uplinks) {
		return fmt.Errorf("this lab was opened with %d network cards for its node, and is to have card %d, counted from 0", len(b.uplinks), op.Number)
	}
	u := &uplink{name: b.uplinks[op.Number], op: op}
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
			err = errors.Join(u.node.nl.LinkSetDown(card), u.node.nl.LinkSetNoMaster(card), u.node.nl.LinkSetName(card, u.name),
				u.origin.ns.WithFD(func(fd int) error { return u.node.nl.LinkSetNsFd(card, fd) }))
		}
	}
	if err := errors.Join(err, u.origin.close()); err != nil {
		return fmt.Errorf("give back the network card %s: %w", u.name, err)
	}
	return nil
}
