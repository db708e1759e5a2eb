package lab

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"sync"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"netdelta/internal/netns"
	"netdelta/network"
	"netdelta/testbed"
	"netdelta/testbed/nsmonitor"
)

// space is a live network namespace with a netlink socket inside.
type space struct {
	name string
	ns   *netns.Namespace
	nl   *netlink.Handle

	modes map[string]string // how devices make IPv6 addresses by themselves, by the setting's path

	mu       sync.Mutex
	index    map[string]int           // of devices, by name
	counters *nsmonitor.CounterReader // nil until it is needed
}

// newSpace makes a namespace, writes its settings, has it carry a mark and brings lo up.
func newSpace(name, mark string, settings []network.Sysctl) (*space, error) {
	s := &space{name: name, index: map[string]int{}, modes: map[string]string{}}
	ns, err := netns.New(func() error {
		var err error
		if s.nl, err = netlink.NewHandle(unix.NETLINK_ROUTE); err != nil {
			return fmt.Errorf("open a netlink socket: %w", err)
		}
		if err := s.write(settings...); err != nil {
			return err
		}
		if err := s.nl.LinkSetAlias(indexed(1), mark); err != nil {
			return fmt.Errorf("mark it: %w", err)
		}
		return s.up("lo")
	})
	s.ns = ns
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make the namespace of %s: %w", name, privilege(err)), s.close())
	}
	return s, nil
}

// adopt has the lab use a node's own namespace.
func (l *Testbed) adopt(part *NodePart) error {
	where := network.InNode(part.Node)
	s := &space{name: where.String(), index: map[string]int{}, modes: map[string]string{}}
	err := part.Own.WithFD(func(fd int) (err error) {
		s.ns, err = netns.OfFile(fd)
		return err
	})
	if err == nil {
		err = s.ns.Do(func() (err error) {
			s.nl, err = netlink.NewHandle(unix.NETLINK_ROUTE)
			return err
		})
	}
	if err != nil {
		return errors.Join(fmt.Errorf("open the namespace of %s: %w", s.name, err), s.close())
	}
	l.spaces[where] = s
	return nil
}

// privilege turns the kernel's refusal into one that says what is missing.
func privilege(err error) error {
	if !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.EACCES) {
		return err
	}
	return &testbed.PermissionError{
		Doing: "make network namespaces and what is in them", Need: "the capabilities CAP_SYS_ADMIN and CAP_NET_ADMIN",
		Fix: "run it as root, or in a user namespace with unshare -Urnm", Err: err,
	}
}

// set writes settings.
func (s *space) set(settings ...network.Sysctl) error {
	return s.ns.Do(func() error { return s.write(settings...) })
}

// write writes settings from a thread that is in the namespace.
func (s *space) write(settings ...network.Sysctl) error {
	for _, o := range settings {
		if err := s.writeOne(o); err != nil {
			return err
		}
	}
	return nil
}

// writeOne writes a setting, unless it is so already. Some settings take the lock of all network devices, for which the kernel does not wait:
// it tries again and again, and keeps a processor busy as long as a namespace is being removed. They are written after something that does
// wait. One takes it to be read, too: of this it is known what was written last.
func (s *space) writeOne(o network.Sysctl) error {
	path := testbed.SettingPath(o.Name)
	modes := strings.HasSuffix(path, "/addr_gen_mode")
	if modes {
		if s.modes[path] == o.Value {
			return nil
		}
	} else if now, err := os.ReadFile(path); err == nil && string(bytes.TrimSpace(now)) == o.Value {
		return nil
	}
	if modes || strings.HasSuffix(path, "/disable_ipv6") || strings.HasSuffix(path, "forward") || strings.HasSuffix(path, "/forwarding") {
		if _, err := s.nl.LinkByIndex(1); err != nil {
			return fmt.Errorf("find lo in %s: %w", s.name, err)
		}
	}
	err := os.WriteFile(path, []byte(o.Value), 0)
	if o.Optional && errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("set %s to %s: %w", o.Name, o.Value, err)
	}
	if modes {
		s.modes[path] = o.Value
	}
	return nil
}

// link finds a device's index, once.
func (s *space) link(name string) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i, ok := s.index[name]; ok {
		return i, nil
	}
	l, err := s.device(name)
	if err != nil {
		return 0, err
	}
	s.index[name] = l.Attrs().Index
	return l.Attrs().Index, nil
}

// device reads one device.
func (s *space) device(name string) (netlink.Link, error) {
	l, err := s.nl.LinkByName(name)
	if err != nil {
		return nil, fmt.Errorf("find device %s in %s: %w", name, s.name, err)
	}
	return l, nil
}

// counts is the namespace's counter reader, opened at its first use.
func (s *space) counts() (*nsmonitor.CounterReader, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.counters != nil {
		return s.counters, nil
	}
	err := s.ns.Do(func() (err error) {
		s.counters, err = nsmonitor.NewCounterReader()
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("in %s: %w", s.name, err)
	}
	return s.counters, nil
}

// forget drops what is known of the devices, which are about to change.
func (s *space) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.index)
}

// indexed is a link that stands for nothing but its index.
func indexed(index int) netlink.Link {
	return &netlink.GenericLink{LinkAttrs: netlink.LinkAttrs{Index: index}}
}

func (s *space) up(name string) error {
	i, err := s.link(name)
	if err != nil {
		return err
	}
	if err := s.nl.LinkSetUp(indexed(i)); err != nil {
		return fmt.Errorf("bring %s up in %s: %w", name, s.name, err)
	}
	return nil
}

// links lists the devices.
func (s *space) links() ([]netlink.Link, error) {
	links, err := nsmonitor.List(s.nl.LinkList)
	if err != nil {
		return nil, fmt.Errorf("list the devices in %s: %w", s.name, err)
	}
	return links, nil
}

// local lists the IPv6 addresses whose packets this namespace takes for itself.
func (s *space) local() (map[netip.Addr]bool, error) {
	routes, err := nsmonitor.List(func() ([]netlink.Route, error) {
		return s.nl.RouteListFiltered(unix.AF_INET6, &netlink.Route{Table: unix.RT_TABLE_LOCAL, Type: unix.RTN_LOCAL},
			netlink.RT_FILTER_TABLE|netlink.RT_FILTER_TYPE)
	})
	if err != nil {
		return nil, fmt.Errorf("list the addresses in %s: %w", s.name, err)
	}
	found := map[netip.Addr]bool{}
	for _, r := range routes {
		if a, ok := netip.AddrFromSlice(r.Dst.IP); ok {
			found[a] = true
		}
	}
	return found, nil
}

// strip deletes all devices but lo.
func (s *space) strip() error {
	s.forget()
	links, err := s.links()
	if err != nil {
		return err
	}
	for _, l := range links {
		if l.Attrs().Name == "lo" {
			continue
		}
		if err := s.nl.LinkDel(indexed(l.Attrs().Index)); err != nil && !errors.Is(err, unix.ENODEV) {
			return fmt.Errorf("delete device %s in %s: %w", l.Attrs().Name, s.name, err)
		}
	}
	return nil
}

// close lets go of the namespace. It is idempotent.
func (s *space) close() error {
	if s.nl != nil {
		s.nl.Close()
	}
	var err error
	s.mu.Lock()
	if s.counters != nil {
		err = s.counters.Close()
	}
	s.mu.Unlock()
	if s.ns == nil {
		return err
	}
	return errors.Join(err, s.ns.Close())
}
