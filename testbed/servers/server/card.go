package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"netdelta/internal/netns"
	"netdelta/result"
	"netdelta/unit"
)

// give gives the node its devices. The function that is returned puts back what the server had, and is called also after a failure.
func (o Order) give(own, node *netns.Namespace, cards []string) (back func() error, err error) {
	from := own
	if o.Mode == Take || o.Mode == VF {
		all, err := o.take(own, cards)
		if err != nil {
			return nil, err
		}
		back = func() error {
			var failed error
			for _, t := range all {
				failed = errors.Join(failed, t.giveBack(own, node))
			}
			if failed != nil {
				return failed
			}
			return o.notes.Remove(cardFile)
		}
		mtu := Jumbo
		if o.Mode == VF {
			mtu = 0 // a function has no more than its card, which stays with the server
		}
		cards = nil
		for _, t := range all {
			if err := t.move(own, node, mtu); err != nil {
				return back, err
			}
			cards = append(cards, t.Name)
		}
		from = node
	}
	return back, node.WithFD(func(fd int) error {
		return from.Do(func() error {
			each := len(o.MACs) / len(cards)
			for k, card := range cards {
				if err := o.devices(card, fd, k*each, each); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// devices makes so many devices, numbered from the first one on, over a card of the calling thread's namespace, in another one. They end with
// that one.
func (o Order) devices(card string, in, first, count int) error {
	parent, err := netlink.LinkByName(card)
	if err != nil {
		return fmt.Errorf("find the card %s: %w", card, err)
	}
	for i, text := range o.MACs[first : first+count] {
		mac, err := net.ParseMAC(text)
		if err != nil {
			return err
		}
		a := netlink.LinkAttrs{Name: deviceName(first + i), ParentIndex: parent.Attrs().Index, Namespace: netlink.NsFd(in), MTU: parent.Attrs().MTU}
		kind := Macvlan
		if OneMAC(o.Mode) {
			kind = IPVlan
		} else {
			a.HardwareAddr = mac
		}
		if err := netlink.LinkAdd(over(kind, a)); err != nil {
			return fmt.Errorf("make %s device over %s: %w; %s", article(kind), card, err, noDevice)
		}
	}
	return nil
}

// noDevice says what to do where no device can be made over a card.
const noDevice = "a card that is a port of a bridge or a bond can't have one, nor one that has devices of the other kind: name another by --nic"

// over is a device over a card, of a kind that is a mode too.
func over(kind string, a netlink.LinkAttrs) netlink.Link {
	if kind == IPVlan {
		return &netlink.IPVlan{Mode: netlink.IPVLAN_MODE_L2, LinkAttrs: a}
	}
	return &netlink.Macvlan{Mode: netlink.MACVLAN_MODE_BRIDGE, LinkAttrs: a}
}

// article is a kind of device with its article.
func article(kind string) string {
	if kind == IPVlan {
		return "an " + kind
	}
	return "a " + kind
}

// taken is what a card was like before it was taken, as it is kept on disk until the card is back.
type taken struct {
	Name      string       `json:"name"`
	MAC       string       `json:"mac"`
	MTU       int          `json:"mtu"`
	Up        bool         `json:"up"`
	Addresses []addressing `json:"addresses"`
	Routes    []routing    `json:"routes"`
	// Made is the file by which the virtual functions were made of which this is one; "" where they were there, or it is none.
	Made string `json:"made,omitempty"`
}

// addressing is an address of the card, with the length of its network, and its broadcast address, "" where it has none.
type addressing struct {
	Address   string `json:"address"`
	Broadcast string `json:"broadcast,omitempty"`
}

// routing is a route over the card.
type routing struct {
	To       string `json:"to,omitempty"`
	Via      string `json:"via,omitempty"`
	From     string `json:"from,omitempty"`
	Table    int    `json:"table"`
	Scope    uint8  `json:"scope"`
	Protocol int    `json:"protocol"`
	Priority int    `json:"priority"`
	MTU      int    `json:"mtu,omitempty"`
}

// take notes what is about to be taken: the cards, or the virtual function of one.
func (o Order) take(own *netns.Namespace, cards []string) (all []taken, err error) {
	err = own.Do(func() error {
		look := noted
		if o.Mode == VF {
			look = o.function
		}
		for _, card := range cards {
			t, err := look(card)
			if err != nil {
				return err
			}
			all = append(all, t)
		}
		return nil
	})
	if err == nil {
		err = o.note(all...)
	}
	return all, err
}

// noteMost bounds a supervisor's notes. A card has few addresses; a router may have a million routes over it.
const noteMost = 256 * unit.MiB

// note writes into the supervisor's notes what the cards are like.
func (o Order) note(all ...taken) error {
	text, err := json.Marshal(all)
	if err == nil {
		err = write(o.notes, cardFile, text)
	}
	if err != nil {
		return fmt.Errorf("note what the cards are like that are taken: %w", err)
	}
	return nil
}

// parseNote reads what note has written.
func parseNote(text []byte) (all []taken, err error) {
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("read what cards were like: %w", err)
	}
	return all, nil
}

// write puts a text into a file of the notes.
func write(notes *result.Files, file string, text []byte) error {
	return notes.Replace(file, 0o600, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
}

// noted is what a card of the calling thread's namespace is like.
func noted(card string) (t taken, err error) {
	link, err := netlink.LinkByName(card)
	if err != nil {
		return t, fmt.Errorf("find the card %s: %w", card, err)
	}
	a := link.Attrs()
	t = taken{Name: card, MAC: a.HardwareAddr.String(), MTU: a.MTU, Up: a.Flags&net.FlagUp != 0}
	addresses, err := listAddresses(link)
	if err != nil {
		return t, err
	}
	for _, one := range addresses {
		own := addressing{Address: one.IPNet.String()}
		if one.Broadcast != nil {
			own.Broadcast = one.Broadcast.String()
		}
		t.Addresses = append(t.Addresses, own)
	}
	routes, err := routesOver(a.Index)
	for _, r := range routes {
		if r.Protocol == unix.RTPROT_KERNEL || r.Table == unix.RT_TABLE_LOCAL {
			continue // they come with the addresses
		}
		one := routing{Table: r.Table, Scope: uint8(r.Scope), Protocol: int(r.Protocol), Priority: r.Priority, MTU: r.MTU}
		if r.Dst != nil {
			one.To = r.Dst.String()
		}
		if r.Gw != nil {
			one.Via = r.Gw.String()
		}
		if r.Src != nil {
			one.From = r.Src.String()
		}
		t.Routes = append(t.Routes, one)
	}
	return t, err
}

// Jumbo is the MTU that a taken card is given where it can have it, so that networks may have any up to it. The devices over it have their
// networks'.
const Jumbo = 9000

// move moves the card to the node, where it is to have at least an MTU.
func (t taken) move(own, node *netns.Namespace, mtu int) error {
	err := node.WithFD(func(fd int) error {
		return own.Do(func() error {
			link, err := netlink.LinkByName(t.Name)
			if err != nil {
				return err
			}
			return netlink.LinkSetNsFd(link, fd)
		})
	})
	if err == nil {
		err = node.Do(func() error {
			link, err := netlink.LinkByName(t.Name)
			if err != nil {
				return err
			}
			if t.MTU < mtu {
				_ = netlink.LinkSetMTU(link, mtu) // one that can't keeps its own
			}
			if err := netlink.LinkSetUp(link); err != nil {
				return err
			}
			return linked(t.Name)
		})
	}
	if err != nil {
		return fmt.Errorf("move the card %s to the node: %w", t.Name, err)
	}
	return nil
}

// linkWithin is how long a card may take to agree with its switch on a link. Real ones take up to five seconds.
const linkWithin = 20 * time.Second

// linked waits for the link of a card of the calling thread's namespace.
func linked(card string) error {
	for until := time.Now().Add(linkWithin); ; time.Sleep(20 * time.Millisecond) {
		link, err := netlink.LinkByName(card)
		if err != nil {
			return err
		}
		if s := link.Attrs().OperState; s == netlink.OperUp || s == netlink.OperUnknown {
			return nil
		}
		if time.Now().After(until) {
			return fmt.Errorf("it has no link after %s: is there a cable in it, and a switch at its other end?", linkWithin)
		}
	}
}

// giveBack moves the card back and makes it what it was. Where the node's namespace is nil, or lacks the card, the kernel has moved it back.
func (t taken) giveBack(own, node *netns.Namespace) error {
	fail := func(err error) error {
		return fmt.Errorf("give the card %s back to the server: %w", t.Name, err)
	}
	if t.Made != "" { // it ends wherever it is
		if err := makeFunctions(t.Made, 0); err != nil {
			return fail(err)
		}
		return nil
	}
	if node != nil {
		err := own.WithFD(func(fd int) error {
			return node.Do(func() error {
				link, err := t.find()
				if err != nil || link == nil {
					return err
				}
				return errors.Join(netlink.LinkSetDown(link), netlink.LinkSetNsFd(link, fd))
			})
		})
		if err != nil {
			return fail(err)
		}
	}
	if err := own.Do(t.restore); err != nil {
		return fail(err)
	}
	return nil
}

// find is the card among the devices of the calling thread's namespace, by its address; nil where it is not there.
func (t taken) find() (netlink.Link, error) {
	links, err := linksHere()
	if err != nil {
		return nil, err
	}
	for _, l := range links {
		// Devices over a card may have its address.
		if l.Attrs().HardwareAddr.String() == t.MAC && !slices.Contains([]string{"vlan", Macvlan, "macvtap", IPVlan, "bridge", "bond"}, l.Type()) {
			return l, nil
		}
	}
	return nil, nil
}

// restore makes the card, in the calling thread's namespace, what it was.
func (t taken) restore() error {
	link, err := t.find()
	if err != nil {
		return err
	}
	if link == nil {
		return fmt.Errorf("there is no device with the address %s: bring it back by its driver, or by a restart of the server", t.MAC)
	}
	if link.Attrs().Name != t.Name {
		err = errors.Join(netlink.LinkSetDown(link), netlink.LinkSetName(link, t.Name))
	}
	err = errors.Join(err, netlink.LinkSetMTU(link, t.MTU))
	if t.Up {
		err = errors.Join(err, netlink.LinkSetUp(link))
	}
	for _, own := range t.Addresses {
		a, failed := netlink.ParseAddr(own.Address)
		if failed == nil {
			if a.Broadcast = net.ParseIP(own.Broadcast).To4(); a.Broadcast == nil && a.IP.To4() != nil {
				a.Broadcast = net.IPv4zero.To4() // that is none; without it the library makes one up
			}
			failed = netlink.AddrReplace(link, a)
		}
		err = errors.Join(err, failed)
	}
	for _, gateways := range []bool{false, true} { // a gateway has to be reachable first
		for _, r := range t.Routes {
			if (r.Via != "") == gateways {
				err = errors.Join(err, r.restore(link.Attrs().Index))
			}
		}
	}
	return err
}

func (r routing) restore(index int) error {
	route := netlink.Route{
		LinkIndex: index, Table: r.Table, Scope: netlink.Scope(r.Scope), Protocol: netlink.RouteProtocol(r.Protocol), Priority: r.Priority, MTU: r.MTU,
		Gw: net.ParseIP(r.Via), Src: net.ParseIP(r.From),
	}
	if r.To != "" {
		_, to, err := net.ParseCIDR(r.To)
		if err != nil {
			return err
		}
		route.Dst = to
	}
	if err := netlink.RouteReplace(&route); err != nil {
		return fmt.Errorf("restore the route to %s: %w", r.To, err)
	}
	return nil
}
