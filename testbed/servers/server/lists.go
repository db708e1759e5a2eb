package server

import (
	"fmt"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"netdelta/testbed/nsmonitor"
)

// linksHere lists the devices of the calling thread's namespace.
func linksHere() ([]netlink.Link, error) {
	links, err := nsmonitor.List(netlink.LinkList)
	if err != nil {
		return nil, fmt.Errorf("list the network cards: %w", err)
	}
	return links, nil
}

// listAddresses lists the addresses of a card but those that the kernel makes.
func listAddresses(l netlink.Link) ([]netlink.Addr, error) {
	addresses, err := nsmonitor.List(func() ([]netlink.Addr, error) { return netlink.AddrList(l, netlink.FAMILY_ALL) })
	if err != nil {
		return nil, fmt.Errorf("list the addresses of %s: %w", l.Attrs().Name, err)
	}
	return slices.DeleteFunc(addresses, func(a netlink.Addr) bool { return a.IP.IsLinkLocalUnicast() }), nil
}

// addressesOf is listAddresses as text.
func addressesOf(l netlink.Link) (all []string, err error) {
	addresses, err := listAddresses(l)
	for _, a := range addresses {
		all = append(all, a.IPNet.String())
	}
	return all, err
}

// routesOver are the routes of all tables that lead over a device.
func routesOver(index int) ([]netlink.Route, error) {
	routes, err := nsmonitor.List(func() ([]netlink.Route, error) {
		return netlink.RouteListFiltered(netlink.FAMILY_ALL, &netlink.Route{LinkIndex: index, Table: unix.RT_TABLE_UNSPEC}, netlink.RT_FILTER_OIF|netlink.RT_FILTER_TABLE)
	})
	if err != nil {
		return nil, fmt.Errorf("list routes: %w", err)
	}
	return routes, nil
}
