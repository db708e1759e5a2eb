package path

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"netdelta/network"
	"netdelta/testbed"
	"netdelta/unit"
)

// tally counts the load's packets that were sampled on one device, by what they were wrapped in.
type tally struct {
	total int
	wraps map[string]int // nil as long as there is none
	// least and most are what the encapsulation of a packet added, 0 without.
	least, most unit.Bytes
}

// add counts a packet.
func (t *tally) add(name string, adds unit.Bytes) {
	t.merge(tally{1, map[string]int{name: 1}, adds, adds})
}

// merge adds the packets of another device.
func (t *tally) merge(o tally) {
	t.total += o.total
	if t.wraps == nil {
		t.wraps = map[string]int{}
	}
	for name, n := range o.wraps {
		t.wraps[name] += n
	}
	if o.least > 0 && (t.least == 0 || o.least < t.least) {
		t.least = o.least
	}
	t.most = max(t.most, o.most)
}

// deviceSample is what a sample shows on one device.
type deviceSample struct {
	tally
	largest unit.Bytes // the largest IP packet
	cut     int        // IP fragments that are not inside something else, but for those of others
	// othersCut are the IP fragments of packets that are none of the load's.
	othersCut int
	control   uint64 // bytes of packets that serve the network itself
	virtual   int    // packets to the virtual address
	readable  int    // packets that should have been encrypted
	payload   int    // packets of the load that carry some
}

// on is what was sampled on a device.
func (j *judgement) on(d network.Device) *deviceSample {
	s := j.seen[d]
	if s == nil {
		s = &deviceSample{}
		j.seen[d] = s
	}
	return s
}

// look decodes the sampled packets.
func (j *judgement) look() {
	d := decoder{encapsulations(nil)}
	pieces := map[piece]*fragments{}
	for _, p := range j.Sample.Packets {
		f, s := d.packet(p), j.on(p.Device)
		if f.control(p.Head) {
			s.control += uint64(p.Length)
		}
		if f.depth == 0 || j.again(p, f) {
			continue
		}
		if j.readable(p, f) {
			s.readable++
		}
		if f.fragment() {
			j.path.Fragments++
			if f.layer[0].fragment {
				of := pieceOf(p, f)
				if pieces[of] == nil {
					pieces[of] = &fragments{}
				}
				if _, own := j.belongs(f); !own && f.layer[0].source.Port() != 0 && j.Encapsulation == none {
					pieces[of].others = true
				}
				pieces[of].count++
			}
		}
		if j.untranslated(f) {
			s.virtual++
		}
		s.largest = max(s.largest, f.onWire(p))
		if at, own := j.belongs(f); own {
			s.add(f.wrapping(at))
			if f.carries() {
				s.payload++
			}
		}
	}
	for of, p := range pieces {
		if p.others {
			j.on(of.on).othersCut += p.count
		} else {
			j.on(of.on).cut += p.count
		}
	}
}

// othersCut is how many fragments of others' packets were sampled in a namespace: on the device that had most, since each passes several.
func (j *judgement) othersCut(s network.Space) (most int) {
	for on, d := range j.seen {
		if on.In == s {
			most = max(most, d.othersCut)
		}
	}
	return most
}

// piece is what the fragments of one packet have in common on one device (RFC 791, section 3.2).
type piece struct {
	on       network.Device
	from, to netip.Addr
	id       uint32
}

func pieceOf(p testbed.Packet, f frame) piece {
	return piece{p.Device, f.layer[0].source.Addr(), f.layer[0].destination.Addr(), f.layer[0].id}
}

// fragments are those that were sampled of one packet.
type fragments struct {
	count int
	// others says that the packet is none of the load's: its first fragment, which alone has ports, names another server. What a tunnel wraps may
	// not show that, and so it is told only of packets that nothing is wrapped in.
	others bool
}

// elsewhere is how many times more of such packets than on any device that was looked at may have passed one that was not.
const elsewhere = 2

// control is how many bytes of packets that serve the network itself a device carried: as sampled there, or, where there was
// no sample, by the most that was sampled anywhere, for what asks all devices for something passes all of them.
func (j *judgement) control(d network.Device) uint64 {
	if slices.Contains(j.Sample.Spaces, d.In) {
		return j.on(d).control
	}
	most := uint64(0)
	for _, s := range j.seen {
		most = max(most, s.control)
	}
	return elsewhere * most
}

// sample holds what was seen against the plan: what the load was wrapped in, how large packets were on the wire, and whether
// some were cut.
func (j *judgement) sample() {
	if j.Sample.Lacks != "" {
		j.weak("no packet sample: needs %s", j.Sample.Lacks)
		return
	}
	j.path.Sampled = len(j.Sample.Packets)
	var all tally
	for _, s := range j.seen {
		all.merge(s.tally)
	}
	if all.total == 0 && !j.past() {
		j.weak("the sample of %d packets (%d more were missed) holds none of the load", j.path.Sampled, j.Sample.Missed)
	}
	j.wrappings()
	j.passed()
	j.sizes()
	j.cut()
	j.secrets()
	for _, h := range j.crossed() {
		if n := j.on(h.Device).virtual; n > 0 {
			j.find("%s carried %d packets to the virtual address %s, which should have been translated before", h.Device, n, j.Virtual)
		}
	}
}

// untranslated tells whether a packet is on its way to the virtual address of the server. Answers may come from there: those
// that pass lo leave with it already.
func (j *judgement) untranslated(f frame) bool {
	return j.Virtual.IsValid() && slices.ContainsFunc(f.layer[:f.depth], func(l layer) bool { return l.destination.Addr() == j.Virtual })
}

// belongs tells whether a frame belongs to the load, and which of its packets does. The outermost packet that belongs counts, for
// the payload may look like anything.
func (j *judgement) belongs(f frame) (at int, own bool) {
	server := func(a netip.AddrPort) bool {
		return (a.Port() == j.Load.Server.Port() || len(j.Load.Peers) > 0) && slices.Contains(j.Servers, a.Addr())
	}
	for i, l := range f.layer[:f.depth] {
		// What is inside an encrypted packet can't be known; nothing else is encrypted here.
		if f.sealed != "" && i == f.depth-1 || l.protocol == j.Load.Protocol && (server(l.source) || server(l.destination)) {
			return i, true
		}
	}
	return 0, false
}

// crossed are the devices on the way, each once, and whether packets are wrapped there.
func (j *judgement) crossed() []network.Hop {
	var all []network.Hop
	for _, h := range j.Request {
		if !slices.ContainsFunc(all, func(o network.Hop) bool { return o.Device == h.Device }) {
			all = append(all, h)
		}
	}
	return all
}

// wire are those devices on the way that stand for the wire: the underlay's ports, or all on one node.
func (j *judgement) wire() []network.Hop {
	all := j.crossed()
	ports := slices.DeleteFunc(slices.Clone(all), func(h network.Hop) bool { return h.Role != network.RolePort || h.Unseen })
	if len(ports) > 0 {
		return ports
	}
	return all
}

// wrappings holds what the load's packets were wrapped in against the plan.
func (j *judgement) wrappings() {
	var seen tally
	for _, h := range j.wire() {
		t := j.on(h.Device).tally
		seen.merge(t)
		j.path.Overhead = max(j.path.Overhead, t.least)
	}
	j.path.Encapsulation = seen.other("")
	for _, h := range j.crossed() {
		t := j.on(h.Device)
		if t.total == 0 || j.Observed {
			continue
		}
		want := j.wrap(h)
		least, most := j.adds(h)
		if wrong := t.total - t.wraps[want]; float64(wrong) > mixedShare*float64(t.total) {
			j.find("%s: %d of %d sampled packets had the encapsulation %s; the plan says %s", h.Device, wrong, t.total, t.other(want), want)
		} else if t.most > 0 && (t.least < least || t.most > most) {
			j.find("%s: the encapsulation of the sampled packets added %d to %d bytes; the plan says %s",
				h.Device, int64(t.least), int64(t.most), between(least, most))
		}
	}
}

// other is the name that most packets have, but for the given one; "" where none is left.
func (t tally) other(than string) string {
	best := ""
	for name, n := range t.wraps {
		if name != than && (best == "" || n > t.wraps[best] || n == t.wraps[best] && name < best) {
			best = name
		}
	}
	return best
}

// sizes holds the largest packets against the MTU.
func (j *judgement) sizes() {
	for _, h := range j.wire() {
		j.path.Largest = max(j.path.Largest, j.on(h.Device).largest)
	}
	own := j.Load.fragments(j.PathMTU)
	for _, h := range j.crossed() {
		limit := j.PathMTU
		switch {
		case own && h.Role == network.RoleBridge:
			continue // a firewall that tracks connections puts fragments together before the bridge hands them to its node
		case h.Encrypted:
			limit += j.Overhead // what fills up the last block is no reason to be larger
		case h.Encapsulated:
			limit += j.Overhead - j.Encryption.Reserve
		}
		if largest := j.on(h.Device).largest; largest > limit {
			j.find("%s carried a packet of %d bytes; the plan's MTU there is %d", h.Device, int64(largest), int64(limit))
		}
	}
}

// cut finds fragments on the wire. The load's own, where it has some, are inside the encapsulation.
func (j *judgement) cut() {
	own := j.Load.fragments(j.PathMTU)
	var where []string
	for _, h := range j.crossed() {
		if n := j.on(h.Device).cut; n > 0 && (!own || h.Encapsulated && !h.Encrypted) {
			where = append(where, fmt.Sprintf("%d on %s", n, h.Device))
		}
	}
	if len(where) > 0 {
		j.find("IP fragments among the sampled packets: %s; the plan's MTUs need none", strings.Join(where, ", "))
	}
}
