package server

import (
	"fmt"

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

// addressesOf lists the addresses of a card but those that the kernel makes.
func addressesOf(l netlink.Link) (all []string, err error) {
	addresses, err := nsmonitor.List(func() ([]netlink.Addr, error) { return netlink.AddrList(l, netlink.FAMILY_ALL) })
	if err != nil {
		return nil, fmt.Errorf("list the addresses of %s: %w", l.Attrs().Name, err)
	}
	for _, a := range addresses {
		if !a.IP.IsLinkLocalUnicast() {
			all = append(all, a.IPNet.String())
		}
	}
	return all, nil
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
