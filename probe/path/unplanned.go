package path

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/unit"
)

// JudgeUnplanned says whether a load went the way that the network of a cluster, of which no plan is known, says. The same observation gives
// the same answer.
func JudgeUnplanned(observed testbed.Observation, load Load) result.Path {
	s := unplanned{
		Observation: observed, load: load, lanes: map[network.Device]*lane{}, changed: map[network.Device]change{},
		statement: statement{result.Path{Payload: load.payload(), Hops: []result.PathHop{}}},
	}
	for where, p := range s.Spaces {
		maps.Copy(s.changed, changes(inPlace(where, p.Before), inPlace(where, p.After)))
	}
	s.look()
	s.insides()
	s.crossing()
	s.offWay()
	s.wrappings()
	s.translation()
	s.fragments()
	s.samples()
	s.hops()
	s.path.OK = len(s.path.Findings) == 0
	return s.path
}

// inPlace gives counters their place.
func inPlace(where network.Space, counters map[string]testbed.Counters) map[network.Device]testbed.Counters {
	all := map[network.Device]testbed.Counters{}
	for name, c := range counters {
		all[network.Device{In: where, Name: name}] = c
	}
	return all
}

// unplanned is the judgement of an observation in the making.
type unplanned struct {
	testbed.Observation
	statement
	load    Load
	lanes   map[network.Device]*lane
	changed map[network.Device]change
}

// lane is what a sample shows of the load on one device.
type lane struct {
	requests, responses stream
	tally
	// vias are the encapsulations in words, and how many packets each has.
	vias map[via]int
	// called and backend are how many requests name the server by the address that was called, and by its own; sent is how many of
	// called the device sent. Encrypted ones name neither.
	called, backend, sent int
	clients               map[netip.Addr]int // the senders of requests, as they say here
	largest               unit.Bytes
	cut                   int
}

// stream is what of a load went one way on a device.
type stream struct{ packets, bytes, payload, outgoing uint64 }

// via is how a packet crossed between nodes.
type via struct {
	name     string
	number   uint32
	port     uint16
	from, to netip.Addr
}

// String is it in words.
func (v via) String() string {
	text := v.name
	if v.number != 0 {
		text += fmt.Sprintf(" of network %d", v.number)
	}
	if v.port != 0 {
		text += fmt.Sprintf(" to UDP port %d", v.port)
	}
	return fmt.Sprintf("%s from %s to %s", text, v.from, v.to)
}

// name is a device as it is called on its node or in its pod.
func (s *unplanned) name(d network.Device) string { return s.Spaces[d.In].Name + "/" + d.Name }

// crosses tells whether the ends are on two nodes.
func (s *unplanned) crosses() bool { return s.Client.On != s.Server.On }

// sampled tells whether all packets of a place were looked at.
func (s *unplanned) sampled(where network.Space) bool {
	p, there := s.Spaces[where]
	return there && p.Lacks == "" && p.Missed == 0
}

// nodes are the places of the nodes, the client's first.
func (s *unplanned) nodes() []network.Space {
	if s.crosses() {
		return []network.Space{s.Client.On, s.Server.On}
	}
	return []network.Space{s.Client.On}
}

// look decodes the sampled packets.
func (s *unplanned) look() {
	ports := map[string][]uint16{"wireguard": {51821, 51871}} // Flannel's for IPv6, and Cilium's
	for _, p := range s.Spaces {
		for _, i := range p.Interfaces {
			if i.Port != 0 {
				ports[i.Kind] = append(ports[i.Kind], i.Port)
			}
		}
	}
	d := decoder{encapsulations(ports)}
	for _, where := range slices.SortedFunc(maps.Keys(s.Spaces), bySpace) {
		for _, p := range s.Spaces[where].Packets {
			s.path.Sampled++
			s.sort(p, d.packet(p))
		}
	}
}

// sort adds a packet to what is known of its device.
func (s *unplanned) sort(p testbed.Packet, f frame) {
	at, request, own := s.belongs(f)
	if !own {
		return
	}
	l := s.lanes[p.Device]
	if l == nil {
		l = &lane{vias: map[via]int{}, clients: map[netip.Addr]int{}}
		s.lanes[p.Device] = l
	}
	name, adds := f.wrapping(at)
	l.add(name, adds)
	if name != none {
		outer := f.layer[0]
		l.vias[via{name, f.number, outer.destination.Port(), outer.source.Addr(), outer.destination.Addr()}]++
	}
	l.largest = max(l.largest, f.onWire(p))
	if f.fragment() {
		s.path.Fragments++
		l.cut++
	}
	into := &l.responses
	if request {
		into = &l.requests
		if name != f.sealed {
			l.addressed(f.layer[at], s.Called, s.Backend, p.Outgoing)
		}
	}
	into.add(p, f, name == f.sealed)
}

// addressed notes how a request names its ends.
func (l *lane) addressed(inner layer, called, backend netip.AddrPort, outgoing bool) {
	l.clients[inner.source.Addr()]++
	switch {
	case means(inner.destination, backend):
		l.backend++
	case means(inner.destination, called):
		l.called++
		if outgoing {
			l.sent++
		}
	}
}

// add counts a packet.
func (t *stream) add(p testbed.Packet, f frame, sealed bool) {
	t.packets++
	t.bytes += uint64(p.Length)
	if p.Outgoing {
		t.outgoing++
	}
	if carried := p.Length - f.start - f.headers; !sealed && f.headers > 0 && carried > 0 {
		t.payload += uint64(carried)
	}
}

// belongs tells whether a frame is of the load, which of its packets is, and which way it goes. What is encrypted between the two
// nodes is taken for the load's.
func (s *unplanned) belongs(f frame) (at int, request, own bool) {
	for i, l := range f.layer[:f.depth] {
		if f.sealed != "" && i == f.depth-1 {
			from, to := s.nodeOf(l.source.Addr()), s.nodeOf(l.destination.Addr())
			return i, from == s.Client.On, s.crosses() && from != to && from != nowhere() && to != nowhere()
		}
		if request := s.serves(l.destination, l.source); l.protocol == s.load.Protocol && (request || s.serves(l.source, l.destination)) {
			return i, request, true
		}
	}
	return 0, false, false
}

// serves tells whether an end of a packet is the server's. Where no port stands for it the other end decides: daemons that serve together
// talk to each other as well.
func (s *unplanned) serves(end, other netip.AddrPort) bool {
	if !means(end, s.Called) && !means(end, s.Backend) {
		return false
	}
	return s.Called.Port() != 0 || other.Addr() == s.Client.Address || other.Addr() == s.Client.NodeAddress
}

// means tells whether the end of a packet is a place, of which any port is meant where it has none.
func means(end, place netip.AddrPort) bool {
	return end == place || place.Port() == 0 && end.Addr() == place.Addr()
}

// nowhere is no node.
func nowhere() network.Space { return network.InSwitch() }

// nodeOf is the node that has an address, or nowhere.
func (s *unplanned) nodeOf(a netip.Addr) network.Space {
	switch a {
	case s.Client.NodeAddress:
		return s.Client.On
	case s.Server.NodeAddress:
		return s.Server.On
	}
	for _, on := range s.nodes() {
		for _, i := range s.Spaces[on].Interfaces {
			if slices.ContainsFunc(i.Addresses, func(p netip.Prefix) bool { return p.Addr() == a }) {
				return on
			}
		}
	}
	return nowhere()
}

// samples says what could not be looked at.
func (s *unplanned) samples() {
	for _, e := range []testbed.PathEnd{s.Client, s.Server} {
		p, there := s.Spaces[e.On]
		lacks := "an agent on the node (--node-agent)"
		if e.Unwatched != "" {
			lacks += ", which failed: " + e.Unwatched
		}
		switch {
		case e == s.Server && !s.crosses():
		case !there:
			s.weak("the devices and packets of %s were not watched: needs %s", e.Node, lacks)
		case e.Unwatched != "":
			s.weak("no packet sample on %s: needs %s", e.Node, lacks)
		case p.Lacks != "":
			s.weak("no packet sample on %s: needs %s", e.Node, p.Lacks)
		case p.Missed > 0:
			s.weak("the sample on %s lacks %d packets", e.Node, p.Missed)
		}
	}
	if n := len(s.load.Peers); n > 0 && s.Called.Port() == 0 {
		s.weak("the client talks to %d more pods: of their ends of the way nothing was looked at", n)
	}
	if len(s.lanes) == 0 && s.sampled(s.Client.On) {
		s.weak("the sample of %d packets holds none of the load", s.path.Sampled)
	}
}

// fragments finds packets that were cut: as sampled, and as the stacks of pods with a namespace of their own have counted.
func (s *unplanned) fragments() {
	for _, d := range s.devices() {
		s.path.Largest = max(s.path.Largest, s.lanes[d].largest)
	}
	mtu, known := s.mtu(s.Client)
	if known {
		s.note("to the client's kernel the path's MTU is %d bytes", int64(mtu))
	}
	s.size(mtu, known)
	back, _ := s.mtu(s.Server) // a client at loopback knows a larger one: a proxy or a translation is on its way
	if s.load.fragments(min(mtu, back)) {
		return
	}
	for _, d := range s.devices() {
		if n := s.lanes[d].cut; n > 0 {
			s.find("%d IP fragments of the load on %s: a packet was larger than the path's MTU", n, s.name(d))
		}
	}
	for _, e := range []testbed.PathEnd{s.Client, s.Server} {
		p, there := s.Spaces[e.In]
		if made := p.StackAfter.FragmentsMade - p.StackBefore.FragmentsMade; there && e.In != e.On && made > 0 {
			s.find("%s cut packets into %d IP fragments", p.Name, made)
		}
	}
}

// mostHeaders is more than encapsulations take of a link's MTU.
const mostHeaders = 120

// size holds the MTU of the way against the one that the cluster is to have: pods have that, or what headers between the nodes leave of it. It
// says nothing of the nodes' own network.
func (s *unplanned) size(mtu unit.Bytes, known bool) {
	switch want := s.ExpectMTU; {
	case want == 0 || s.Reach == testbed.ReachHost:
	case !known:
		s.weak("that the cluster has an MTU of %d bytes is not verified: the client's kernel has no route that says", int64(want))
	case mtu > want || mtu < want-mostHeaders:
		s.find("to the client's kernel the path's MTU is %d bytes: the cluster is not as level mtu=%d has it", int64(mtu), int64(want))
	}
}

// mtu is the MTU of an end's way to the other as its kernel knows it, and the largest there is where that is unknown.
func (s *unplanned) mtu(e testbed.PathEnd) (mtu unit.Bytes, known bool) {
	r, found := s.way(e)
	i, there := interfaceOf(s.Spaces[e.In], r.Device)
	if !found || !there {
		return largestPacket(s.Called.Addr()), false
	}
	return unit.Bytes(cmp.Or(r.MTU, i.MTU)), true
}

// devices are those on which the load was seen, in a fixed order.
func (s *unplanned) devices() []network.Device {
	return slices.SortedFunc(maps.Keys(s.lanes), byPlace)
}
