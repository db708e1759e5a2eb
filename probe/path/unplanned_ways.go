package path

import (
	"cmp"
	"maps"
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

// expected is the name that a decoder has for what packets are expected to be wrapped in, "" where nothing is expected.
func (s *unplanned) expected() string {
	switch {
	case s.Reach == testbed.ReachNodePort:
		return "" // what is called is a node, not a pod: the network of pods need not wrap that
	case s.Expect == testbed.InIPsec:
		return "esp"
	case s.Expect != "":
		return string(s.Expect)
	case s.Reach == testbed.ReachHost:
		return none
	}
	return ""
}

// wrappings holds what packets were wrapped in between the nodes against what is expected, or notes it.
func (s *unplanned) wrappings() {
	if !s.crosses() {
		s.path.Encapsulation = s.without()
		return
	}
	var seen tally
	looked := false
	for _, on := range s.nodes() {
		looked = looked || s.Spaces[on].Lacks == "" && len(s.Spaces[on].Interfaces) > 0
		for _, name := range s.wire(on) {
			d := network.Device{In: on, Name: name}
			i, _ := interfaceOf(s.Spaces[on], name)
			if l := s.lanes[d]; l != nil && !bridges(i) {
				seen.merge(l.tally)
				s.held(d, l)
			}
		}
	}
	s.path.Encapsulation, s.path.Overhead = seen.other(""), seen.least
	if s.expected() != "" && s.Expect != "" && (!looked || seen.total == 0) {
		s.weak("that packets cross between nodes as %s, as the change has it, is not verified: needs a packet sample on their nodes (--node-agent)", s.Expect)
	}
}

// without is the encapsulation of what was looked at and can't have any.
func (s *unplanned) without() string {
	if len(s.lanes) == 0 {
		return ""
	}
	return none
}

// held holds the packets on one wire against what is expected there.
func (s *unplanned) held(d network.Device, l *lane) {
	want := s.expected()
	said := want
	if want == "" {
		want = l.other("") // of one pair of nodes all packets go one way
	}
	wrong := l.total - l.wraps[want]
	if want == string(testbed.InGRE) {
		wrong -= l.wraps["gretap"]
	}
	if float64(wrong) > mixedShare*float64(l.total) {
		switch other := l.other(want); {
		case said != "" && s.Expect != "":
			s.find("%s: the change did not take effect: %d of %d sampled packets had the encapsulation %s, where %s is expected", s.name(d), wrong, l.total, other, s.Expect)
		case said == none:
			s.find("%s: %d of %d sampled packets had the encapsulation %s; host networking has none", s.name(d), wrong, l.total, other)
		default:
			s.find("%s: %d of %d sampled packets had the encapsulation %s, and the others %s", s.name(d), wrong, l.total, other, want)
		}
	}
	s.outsides(d, l)
}

// outsides notes how packets cross, and finds those whose outer addresses are not the two nodes'.
func (s *unplanned) outsides(d network.Device, l *lane) {
	for _, v := range slices.SortedFunc(maps.Keys(l.vias), func(a, b via) int { return cmp.Compare(a.String(), b.String()) }) {
		from, to := s.nodeOf(v.from), s.nodeOf(v.to)
		_, both := s.Spaces[s.Server.On]
		if _, client := s.Spaces[s.Client.On]; !both || !client {
			continue
		}
		if from == nowhere() || to == nowhere() || from == to {
			s.find("%s: %d sampled packets were wrapped as %s, which are not the two nodes", s.name(d), l.vias[v], v)
		} else if d.In == s.Client.On && from == s.Client.On {
			s.note("%s: %s", s.name(d), v)
		}
	}
}

// translation holds what requests named as their server, where a service stands in for it, and says who the server takes for its
// client.
func (s *unplanned) translation() {
	if s.Called != s.Backend {
		s.service()
	}
	seen, known := s.stated()
	switch {
	case !known && s.Called != s.Backend:
		s.weak("whether the server sees its client's own address is not known: needs a packet sample on its node")
	case known && !s.clientHas(seen):
		s.note("the server takes its client for %s: its address %s was translated (SNAT)", seen, s.Client.Address)
	case known && s.Called != s.Backend:
		s.note("the server sees its client's own address %s", seen)
	}
}

// clientHas tells whether an address is one of the client's own.
func (s *unplanned) clientHas(a netip.Addr) bool {
	return a == s.Client.Address || slices.ContainsFunc(s.Spaces[s.Client.In].Interfaces, func(i testbed.Interface) bool {
		return slices.ContainsFunc(i.Addresses, func(p netip.Prefix) bool { return p.Addr() == a })
	})
}

// service looks for where the service's address was translated: before packets of a service leave the client's node, and for
// a node's port before they leave that node.
func (s *unplanned) service() {
	facing := s.facing(s.Server)
	called, backend := 0, 0
	for _, d := range s.devices() {
		l := s.lanes[d]
		n := 0
		switch {
		case d.In == s.Server.On && slices.Contains(facing, d.Name):
			n = l.sent // into the server's pod; out of a client's, on the same bridge, they are right
		case s.Reach == testbed.ReachService && s.crosses() && slices.Contains(s.wire(d.In), d.Name):
			n = l.called
		}
		if float64(n) > mixedShare*float64(l.called+l.backend) {
			s.find("%s carried %d packets to %s, which should have been translated to %s before", s.name(d), n, s.Called, s.Backend)
		}
		called, backend = called+l.called, backend+l.backend
	}
	switch {
	case called > 0 && backend > 0:
		s.note("requests to %s were translated to %s (DNAT)%s", s.Called, s.Backend, s.where())
	case backend > 0:
		s.note("no packet was addressed to %s: the client's socket was given %s in its place", s.Called, s.Backend)
	case len(s.lanes) == 0:
		s.weak("where the service's address is translated was not seen: needs a packet sample on the nodes")
	default:
		s.weak("none of the sampled requests names the server behind the service: the address is translated elsewhere")
	}
}

// where names the node on which requests had both addresses.
func (s *unplanned) where() string {
	for _, on := range s.nodes() {
		called, backend := 0, 0
		for d, l := range s.lanes {
			if d.In == on {
				called, backend = called+l.called, backend+l.backend
			}
		}
		if called > 0 && backend > 0 {
			return " on " + s.Spaces[on].Name
		}
	}
	return " between the nodes"
}
