package path

import (
	"net/netip"
	"slices"

	"netdelta/internal/gather"
	"netdelta/network"
	"netdelta/testbed"
)

// loopback is the device of what stays in a namespace.
const loopback = "lo"

// routeTo is the route of a place to an address.
func routeTo(p testbed.ObservedSpace, to netip.Addr) (testbed.Route, bool) {
	return gather.First(p.Routes, func(r testbed.Route) bool { return r.To == to })
}

// interfaceOf is the device of this name.
func interfaceOf(p testbed.ObservedSpace, name string) (testbed.Interface, bool) {
	return gather.First(p.Interfaces, func(i testbed.Interface) bool { return i.Name == name })
}

// ports are the devices that a bridge joins.
func ports(p testbed.ObservedSpace, bridge string) []string {
	var all []string
	for _, i := range p.Interfaces {
		if i.Master == bridge && bridge != "" {
			all = append(all, i.Name)
		}
	}
	return all
}

// bridges tells whether a device only joins others, so that what passes them does not pass it.
func bridges(i testbed.Interface) bool { return i.Kind == "bridge" || i.Kind == "openvswitch" }

// tunnels tells whether a device wraps packets up.
func tunnels(i testbed.Interface) bool {
	kinds := []string{
		"vxlan", "geneve", "ipip", "sit", "ip6tnl", "gre", "gretap", "ip6gre", "ip6gretap", "wireguard", "xfrm", "vti", "vti6", "tun", "tuntap", "fou",
	}
	return slices.Contains(kinds, i.Kind)
}

// uplink tells whether a device may lead away from a node: a card, what is built of cards, or another device with an address.
func uplink(i testbed.Interface) bool {
	if slices.Contains([]string{"device", "bond", "team", "vlan", "macvlan", "ipvlan"}, i.Kind) {
		return i.Name != loopback
	}
	return i.Kind == "veth" && slices.ContainsFunc(i.Addresses, func(p netip.Prefix) bool { return !p.Addr().IsLinkLocalUnicast() })
}

// wire are the devices by which a node reaches the other, the one of the route, or the one that it must use, first: of a bridge the ports as
// well.
func (s *unplanned) wire(on network.Space) []string {
	other := s.Server.NodeAddress
	if on == s.Server.On {
		other = s.Client.NodeAddress
	}
	p := s.Spaces[on]
	r, found := routeTo(p, other)
	card := r.Device
	if s.Via != "" && s.Reach != testbed.ReachSecondary {
		card, found = s.Via, len(p.Interfaces) > 0
	}
	if !found || !s.crosses() {
		return nil
	}
	all := []string{card}
	if i, there := interfaceOf(p, card); there && bridges(i) {
		all = append(all, ports(p, card)...)
	}
	return all
}

// beneath are the devices that a way over others uses as well: the links of bonds, what lies under a VLAN.
func beneath(p testbed.ObservedSpace, names []string) []string {
	var all []string
	for _, name := range names {
		for _, i := range p.Interfaces {
			if i.Name == name && i.Lower != "" {
				all = append(all, i.Lower)
			}
		}
		all = append(all, ports(p, name)...)
	}
	return all
}

// facing are the devices of a node by which it reaches a pod on it, the pod's own end first; none for a pod in the node's own namespace,
// and for one that is spoken to in a network of which the node knows nothing.
func (s *unplanned) facing(e testbed.PathEnd) []string {
	p := s.Spaces[e.On]
	r, found := routeTo(p, e.Address)
	if !found || e.In == e.On || s.secondary() {
		return nil
	}
	if i, there := interfaceOf(p, r.Device); there && bridges(i) {
		return append(ports(p, r.Device), r.Device)
	}
	return []string{r.Device}
}

// known are the devices of a node that a load may pass.
func (s *unplanned) known(on network.Space) []string {
	p := s.Spaces[on]
	all := []string{loopback}
	for _, e := range []testbed.PathEnd{s.Client, s.Server} {
		if e.On == on {
			all = append(all, s.facing(e)...)
		}
	}
	if !s.crosses() {
		return all
	}
	wire := s.wire(on)
	all = append(append(all, wire...), beneath(p, wire)...)
	for _, i := range p.Interfaces {
		if tunnels(i) && s.Reach != testbed.ReachHost {
			all = append(all, i.Name)
		}
	}
	return all
}

// role is what a device of a node is for.
func (s *unplanned) role(d network.Device) network.Role {
	i, there := interfaceOf(s.Spaces[d.In], d.Name)
	switch {
	case d.Name == loopback:
		return network.RoleLoopback
	case there && tunnels(i):
		return network.RoleEncapsulation
	case slices.Contains(s.wire(d.In), d.Name) && !bridges(i):
		return network.RolePort
	case there && bridges(i):
		return network.RoleBridge
	case slices.Contains(beneath(s.Spaces[d.In], s.wire(d.In)), d.Name):
		return network.RoleLink
	}
	for _, e := range []testbed.PathEnd{s.Client, s.Server} {
		if e.On == d.In && slices.Contains(s.facing(e), d.Name) {
			return network.RoleNodeEnd
		}
	}
	return RoleObserved
}
