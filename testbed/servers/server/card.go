package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"netdelta/internal/netns"
	"netdelta/testbed/nsmonitor"
)

// Report is what a server says of itself and of its card.
type Report struct {
	Host     string       `json:"host"`
	Kernel   string       `json:"kernel"`
	Arch     string       `json:"arch"`
	OS       string       `json:"os"`
	Model    string       `json:"model"`
	CPUs     int          `json:"cpus"`
	Governor string       `json:"governor,omitempty"`
	Virtual  string       `json:"virtual,omitempty"`
	Clock    string       `json:"clock"`
	Card     CardReport   `json:"card"`
	Cards    []CardReport `json:"cards"`
	// Rights says what this user may not do that a node takes; "" where nothing is lacking. Networks are found out only where it is looked.
	Rights   string          `json:"rights,omitempty"`
	Networks []NetworkReport `json:"networks,omitempty"`
}

// NetworkReport says why a server lacks a network; Why is "" where it has it.
type NetworkReport struct {
	Name string `json:"name"`
	Why  string `json:"why,omitempty"`
}

// CardReport is what a server says of a card.
type CardReport struct {
	Name   string `json:"name"`
	MAC    string `json:"mac"`
	Driver string `json:"driver"`
	// Speed is in bits per second, 0 where it is not known.
	Speed int64 `json:"speed"`
	MTU   int   `json:"mtu"`
	// Addresses have the lengths of their networks.
	Addresses []string `json:"addresses,omitempty"`
	Up        bool     `json:"up"`
	// NoMacvlan says why no macvlan device can be over it; "" where one can.
	NoMacvlan string `json:"no_macvlan,omitempty"`
	// NotTaken says why the card can't be taken; "" where it can.
	NotTaken string `json:"not_taken,omitempty"`
}

// give gives the node its devices. The function that is returned puts back what the server had, and is called also after a failure.
func (o Order) give(own, node *netns.Namespace, card string) (back func() error, err error) {
	from := own
	if o.Mode == Take {
		t, err := o.take(own, card)
		if err != nil {
			return nil, err
		}
		back = func() error {
			if err := t.giveBack(own, node); err != nil {
				return err
			}
			return os.Remove(filepath.Join(o.Folder, CardFile))
		}
		if err := t.move(own, node); err != nil {
			return back, err
		}
		from = node
	}
	return back, node.WithFD(func(fd int) error {
		return from.Do(func() error { return o.wires(card, fd) })
	})
}

// wires makes the devices over a card of the calling thread's namespace, in another one. They end with that one.
func (o Order) wires(card string, in int) error {
	parent, err := netlink.LinkByName(card)
	if err != nil {
		return fmt.Errorf("find the card %s: %w", card, err)
	}
	for i, text := range o.MACs {
		mac, err := net.ParseMAC(text)
		if err != nil {
			return err
		}
		err = netlink.LinkAdd(&netlink.Macvlan{Mode: netlink.MACVLAN_MODE_BRIDGE, LinkAttrs: netlink.LinkAttrs{
			Name: fmt.Sprintf("wire%d", i), ParentIndex: parent.Attrs().Index, HardwareAddr: mac, Namespace: netlink.NsFd(in), MTU: parent.Attrs().MTU,
		}})
		if err != nil {
			return fmt.Errorf("make a macvlan device over %s: %w; a card that is a port of a bridge or a bond can't have one: name another by --nic", card, err)
		}
	}
	return nil
}

// taken is what a card was like before it was taken, as it is kept on disk until the card is back.
type taken struct {
	Name      string    `json:"name"`
	MAC       string    `json:"mac"`
	MTU       int       `json:"mtu"`
	Up        bool      `json:"up"`
	Addresses []string  `json:"addresses"`
	Routes    []routing `json:"routes"`
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

// take notes what the card is like, in the supervisor's folder.
func (o Order) take(own *netns.Namespace, card string) (t taken, err error) {
	err = own.Do(func() error {
		t, err = noted(card)
		return err
	})
	if err != nil {
		return t, err
	}
	text, err := json.Marshal(t)
	if err == nil {
		err = os.WriteFile(filepath.Join(o.Folder, CardFile), text, 0o600)
	}
	if err != nil {
		return t, fmt.Errorf("note what the card %s is like: %w", card, err)
	}
	return t, nil
}

// noted is what a card of the calling thread's namespace is like.
func noted(card string) (t taken, err error) {
	link, err := netlink.LinkByName(card)
	if err != nil {
		return t, fmt.Errorf("find the card %s: %w", card, err)
	}
	a := link.Attrs()
	t = taken{Name: card, MAC: a.HardwareAddr.String(), MTU: a.MTU, Up: a.Flags&net.FlagUp != 0}
	if t.Addresses, err = addressesOf(link); err != nil {
		return t, err
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

// move moves the card to the node.
func (t taken) move(own, node *netns.Namespace) error {
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
			return netlink.LinkSetUp(link)
		})
	}
	if err != nil {
		return fmt.Errorf("move the card %s to the node: %w", t.Name, err)
	}
	return nil
}

// giveBack moves the card back and makes it what it was. Where the node's namespace is nil, or lacks the card, the kernel has moved it back.
func (t taken) giveBack(own, node *netns.Namespace) error {
	fail := func(err error) error {
		return fmt.Errorf("give the card %s back to the server: %w", t.Name, err)
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
		if l.Attrs().HardwareAddr.String() == t.MAC && !slices.Contains([]string{"vlan", Macvlan, "macvtap", "ipvlan", "bridge", "bond"}, l.Type()) {
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
	for _, text := range t.Addresses {
		a, failed := netlink.ParseAddr(text)
		if failed == nil {
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

// about is what a server says of a card of the calling thread's namespace.
func about(link netlink.Link) CardReport {
	a := link.Attrs()
	driver, speed := nsmonitor.Card(a.Name)
	return CardReport{Name: a.Name, MAC: a.HardwareAddr.String(), Driver: driver, Speed: int64(speed), MTU: a.MTU, Up: a.Flags&net.FlagUp != 0}
}
