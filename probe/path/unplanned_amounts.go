package path

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"netdelta/internal/gather"
	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/unit"
)

// passing is an amount that must have passed a device one way.
type passing struct {
	request, sends bool
	least          unit.Bytes
}

// passings lists what passes where an end of the way sends: requests where it is the client's.
func (l Load) passings(client bool) []passing {
	if l.Opaque {
		return nil
	}
	return []passing{{true, client, l.Requests}, {false, !client, l.Responses}}
}

// least is what of an opaque load must have passed an end of the way, both ways together: the client's devices carried all of it, those
// of one server among several any part.
func (l Load) least(client bool) unit.Bytes {
	if !l.Opaque || !client && len(l.Peers) > 0 {
		return 0
	}
	return l.Both
}

// insides holds the devices of the pods against the load, by their counters, which miss nothing: what was moved must have passed the
// device of the route, and no other.
func (s *unplanned) insides() {
	for _, e := range []testbed.PathEnd{s.Client, s.Server} {
		p, there := s.Spaces[e.In]
		if !there {
			continue
		}
		own, found := s.own(e)
		if !found {
			s.weak("%s names no route to the other end: what its devices carried is not held against the load", p.Name)
			continue
		}
		c := s.changed[own]
		if c.lost != "" {
			s.find("%s", s.loss(own))
			continue
		}
		client := e == s.Client
		s.path.Findings = append(s.path.Findings, c.shortages(s.name(own), leastShare, s.load.least(client), s.load.passings(client)...)...)
		if e.In != e.On {
			s.others(own, c)
		}
	}
}

// way is the route by which an end reaches the other, and whether it is known.
func (s *unplanned) way(e testbed.PathEnd) (testbed.Route, bool) {
	to := s.Called.Addr()
	if e == s.Server {
		to = s.Client.Address
	}
	r, found := routeTo(s.Spaces[e.In], to)
	if e == s.Client && r.Device == loopback && !to.IsLoopback() && s.Called != s.Backend {
		return routeTo(s.Spaces[e.In], s.Backend.Addr()) // it calls an address of its own machine, which is translated before packets leave
	}
	return r, found
}

// own is the device by which an end reaches the other.
func (s *unplanned) own(e testbed.PathEnd) (network.Device, bool) {
	if e.In == e.On && !s.crosses() && s.Client.In == s.Server.In {
		return network.Device{In: e.In, Name: loopback}, true
	}
	r, found := s.way(e)
	return network.Device{In: e.In, Name: r.Device}, found
}

// others finds devices of a pod, other than its own way out, that carried the load.
func (s *unplanned) others(own network.Device, all change) {
	for _, d := range inOrder(s.changed) {
		c := s.changed[d]
		if d.In != own.In || d == own || d.Name == loopback || c.lost != "" {
			continue
		}
		if t := c.both(); float64(t.bytes) > max(strayShare*float64(all.both().bytes), blindFloor) {
			s.path.Stray = append(s.path.Stray, result.PathHop{Device: s.name(d), Sends: c.sent.bytes > c.received.bytes, Packets: t.packets, Bytes: t.bytes})
			s.find("%s carried %d bytes in %d packets; the route is by %s", s.name(d), t.bytes, t.packets, own.Name)
		}
	}
}

// shortages are the ways in which a device carried less than a share of what must have passed it: each way, and both together.
func (c change) shortages(name string, share float64, both unit.Bytes, ways ...passing) []string {
	var all []string
	for _, w := range ways {
		if t := c.of(w.sends); float64(t.bytes) < share*float64(w.least) {
			all = append(all, fmt.Sprintf("%s %s %d bytes in %d packets; %d bytes of payload must have passed it",
				name, crossing{sends: w.sends}.verb(), t.bytes, t.packets, int64(w.least)))
		}
	}
	if t := c.both(); float64(t.bytes) < share*float64(both) {
		all = append(all, fmt.Sprintf("%s carried %d bytes in %d packets; at least %d bytes of payload must have passed it", name, t.bytes, t.packets, int64(both)))
	}
	return all
}

func (s *unplanned) loss(d network.Device) string {
	return fmt.Sprintf("%s %s while it was watched", s.name(d), s.changed[d].lost)
}

// secondary tells whether the ends speak in a secondary network, whose links only its builder knows.
func (s *unplanned) secondary() bool { return s.Reach == testbed.ReachSecondary }

// crossing holds what passed the wire between two nodes against the load: packet by packet where all were sampled, and by the
// counters, which count what others move too.
func (s *unplanned) crossing() {
	if !s.crosses() || s.load.Opaque || s.secondary() {
		return
	}
	for _, on := range s.nodes() {
		if _, there := s.Spaces[on]; !there {
			continue
		}
		wire := s.wire(on)
		if len(wire) == 0 {
			if s.sampled(on) {
				s.weak("%s names no route to the other node: which device is its network card is not known", s.Spaces[on].Name)
			}
			continue
		}
		for _, w := range s.load.passings(on == s.Client.On) {
			got, packets, exact := s.amount(on, wire, w)
			if float64(got) >= leastShare*float64(w.least) {
				continue
			}
			of := ""
			if exact {
				of = " of the load"
			}
			first := network.Device{In: on, Name: wire[0]}
			s.find("%s %s %d bytes%s in %d packets; %d bytes of payload must have passed it%s",
				s.name(first), crossing{first, w.sends}.verb(), got, of, packets, int64(w.least), s.instead(on, wire))
		}
	}
}

// amount is what passed the wire of a node one way. It is exact where it is of the load alone.
func (s *unplanned) amount(on network.Space, wire []string, w passing) (bytes, packets uint64, exact bool) {
	for _, name := range wire {
		d := network.Device{In: on, Name: name}
		if !s.sampled(on) {
			t := s.changed[d].of(w.sends)
			bytes, packets = bytes+t.bytes, packets+t.packets
			continue
		}
		l := s.lanes[d]
		if l == nil {
			continue
		}
		t := l.responses
		if w.request {
			t = l.requests
		}
		if (t.outgoing > t.packets/2) == w.sends {
			bytes, packets = bytes+cmp.Or(t.payload, t.bytes), packets+t.packets
		}
	}
	return bytes, packets, s.sampled(on)
}

// instead names the devices that carried the load where the wire did not.
func (s *unplanned) instead(on network.Space, wire []string) string {
	var names []string
	for _, d := range s.devices() {
		if i, there := interfaceOf(s.Spaces[on], d.Name); d.In == on && there && uplink(i) && !slices.Contains(wire, d.Name) {
			names = append(names, s.name(d))
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "; it was seen on " + strings.Join(names, ", ")
}

// offWay finds devices of the nodes that carried the load and are on no way: other cards, tunnels under host networking, and
// anything that leads away from a node that both ends are on.
func (s *unplanned) offWay() {
	if s.secondary() {
		return
	}
	for _, d := range s.devices() {
		l, on := s.lanes[d], d.In
		i, there := interfaceOf(s.Spaces[on], d.Name)
		if s.crosses() && len(s.wire(on)) == 0 || slices.Contains(s.known(on), d.Name) || there && !uplink(i) && !tunnels(i) {
			continue
		}
		bytes := l.requests.bytes + l.responses.bytes
		if float64(bytes) <= max(strayShare*float64(s.load.payload()), strayFloor) {
			continue
		}
		s.path.Stray = append(s.path.Stray, result.PathHop{
			Device: s.name(d), Sends: l.requests.outgoing > 0, Packets: l.requests.packets + l.responses.packets, Bytes: bytes,
		})
		why := "it leads away from the node that both ends are on"
		switch {
		case s.crosses() && tunnels(i):
			why = "host networking goes through no tunnel"
		case s.crosses():
			why = "the route to the other node is by " + strings.Join(s.wire(on), ", ")
			if s.Via != "" {
				why = "it must leave by " + s.Via + ", as the study has it"
			}
		}
		s.find("%s carried %d bytes of the load in %d packets; %s", s.name(d), bytes, l.requests.packets+l.responses.packets, why)
	}
}

// hops notes the devices that carried requests: in pods by their counters, on nodes by the sample, in the order in which packets
// pass what they are for.
func (s *unplanned) hops() {
	s.end(s.Client, true)
	all := gather.Where(s.devices(), func(d network.Device) bool { return s.lanes[d].requests.packets > 0 })
	slices.SortStableFunc(all, func(a, b network.Device) int {
		return cmp.Or(bySpace(a.In, b.In), cmp.Compare(s.rank(a), s.rank(b)))
	})
	for _, d := range all {
		l := s.lanes[d]
		t := l.requests
		s.path.Hops = append(s.path.Hops, result.PathHop{
			Device: s.name(d), Role: string(s.role(d)), Sends: t.outgoing > t.packets/2, Encapsulated: l.wraps[none] < l.total/2, Packets: t.packets, Bytes: t.bytes,
		})
	}
	s.end(s.Server, false)
}

// end notes the device of a pod with a namespace of its own, or of any without a sample.
func (s *unplanned) end(e testbed.PathEnd, sends bool) {
	p, there := s.Spaces[e.In]
	own, found := s.own(e)
	if !there || !found || p.Lacks == "" {
		return
	}
	t := s.changed[own].of(sends)
	role := network.RolePod
	if own.Name == loopback {
		role = network.RoleLoopback
	}
	s.path.Hops = append(s.path.Hops, result.PathHop{Device: s.name(own), Role: string(role), Sends: sends, Packets: t.packets, Bytes: t.bytes})
}

// rank is where a device stands on the way out of the client's node; packets come into the server's in the opposite order.
func (s *unplanned) rank(d network.Device) int {
	order := []network.Role{network.RoleLoopback, network.RoleNodeEnd, network.RoleBridge, RoleObserved, network.RoleEncapsulation, network.RolePort, network.RoleLink}
	at := slices.Index(order, s.role(d))
	switch {
	case d.In == s.Server.On && s.crosses():
		return -at
	case !s.crosses() && s.role(d) == network.RoleNodeEnd && s.lanes[d].requests.outgoing > 0:
		return len(order) // into the server's pod
	}
	return at
}

// stated is the address that the server's end takes for its client, and whether it is known.
func (s *unplanned) stated() (netip.Addr, bool) {
	p := s.Spaces[s.Server.In]
	for _, peer := range p.Peers {
		if s.load.Protocol == network.TCP {
			return peer.Addr(), true
		}
	}
	for _, name := range s.facing(s.Server) {
		l := s.lanes[network.Device{In: s.Server.On, Name: name}]
		if l == nil {
			continue
		}
		for a := range l.clients {
			if len(l.clients) == 1 {
				return a, true
			}
		}
	}
	return netip.Addr{}, false
}
