package path

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"netdelta/network"
	"netdelta/unit"
)

// tally counts the load's packets that were sampled on one device, by what they were wrapped in.
type tally struct {
	total int
	wraps map[string]int
	// least and most are what the encapsulation of a packet added, 0 without.
	least, most unit.Bytes
}

// add counts a packet.
func (t *tally) add(name string, adds unit.Bytes) {
	t.total++
	t.wraps[name]++
	if adds > 0 && (t.least == 0 || adds < t.least) {
		t.least = adds
	}
	t.most = max(t.most, adds)
}

// sampleCounts are what a sample shows, device by device.
type sampleCounts struct {
	tallies map[network.Device]*tally
	large   map[network.Device]unit.Bytes // the largest IP packet
	cut     map[network.Device]int        // IP fragments that are not inside something else
	control map[network.Device]uint64     // bytes of packets that serve the network itself
	virtual map[network.Device]int        // packets to the virtual address
	// readable are packets that should have been encrypted.
	readable map[network.Device]int
	// payload are packets of the load that carry some.
	payload map[network.Device]int
}

// look decodes the sampled packets.
func (j *judgement) look() {
	j.seen = sampleCounts{
		map[network.Device]*tally{}, map[network.Device]unit.Bytes{}, map[network.Device]int{}, map[network.Device]uint64{},
		map[network.Device]int{}, map[network.Device]int{}, map[network.Device]int{},
	}
	d := decoder{encapsulations()}
	for _, p := range j.Sample.Packets {
		f := d.packet(p)
		if f.control(p.Head) {
			j.seen.control[p.Device] += uint64(p.Length)
		}
		if f.depth == 0 || j.again(p, f) {
			continue
		}
		if j.readable(p, f) {
			j.seen.readable[p.Device]++
		}
		if f.fragment() {
			j.path.Fragments++
			if f.layer[0].fragment {
				j.seen.cut[p.Device]++
			}
		}
		if j.untranslated(f) {
			j.seen.virtual[p.Device]++
		}
		j.seen.large[p.Device] = max(j.seen.large[p.Device], f.onWire(p))
		if name, adds, own := j.wrapped(f); own {
			t := j.seen.tallies[p.Device]
			if t == nil {
				t = &tally{wraps: map[string]int{}}
				j.seen.tallies[p.Device] = t
			}
			t.add(name, adds)
			if f.carries() {
				j.seen.payload[p.Device]++
			}
		}
	}
}

// elsewhere is how many times more of such packets than on any device that was looked at may have passed one that was not.
const elsewhere = 2

// control is how many bytes of packets that serve the network itself a device carried: as sampled there, or, where there was
// no sample, by the most that was sampled anywhere, for what asks all devices for something passes all of them.
func (j *judgement) control(d network.Device) uint64 {
	if slices.Contains(j.Sample.Spaces, d.In) {
		return j.seen.control[d]
	}
	most := uint64(0)
	for _, bytes := range j.seen.control {
		most = max(most, bytes)
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
	if len(j.seen.tallies) == 0 && !j.past() {
		j.weak("the sample of %d packets (%d more were missed) holds none of the load", j.path.Sampled, j.Sample.Missed)
	}
	j.wrappings(j.seen.tallies)
	j.passed()
	j.sizes(j.seen.large)
	j.cut(j.seen.cut)
	j.secrets()
	for _, h := range j.crossed() {
		if n := j.seen.virtual[h.Device]; n > 0 {
			j.find("%s carried %d packets to the virtual address %s, which should have been translated before", h.Device, n, j.Virtual)
		}
	}
}

// untranslated tells whether a packet is on its way to the virtual address of the server. Answers may come from there: those
// that pass lo leave with it already.
func (j *judgement) untranslated(f frame) bool {
	return j.Virtual.IsValid() && slices.ContainsFunc(f.layer[:f.depth], func(l layer) bool { return l.destination.Addr() == j.Virtual })
}

// wrapped tells whether a frame belongs to the load, what it is wrapped in, and how much that adds (0 is unknown). The
// outermost packet that belongs counts, for the payload may look like anything.
func (j *judgement) wrapped(f frame) (name string, adds unit.Bytes, own bool) {
	server := func(a netip.AddrPort) bool {
		return (a.Port() == j.Load.Server.Port() || len(j.Load.Peers) > 0) && slices.Contains(j.Servers, a.Addr())
	}
	for i, l := range f.layer[:f.depth] {
		if f.sealed != "" && i == f.depth-1 {
			return f.sealed, 0, true // what is inside can't be known; nothing else is encrypted here
		}
		if l.protocol != j.Load.Protocol || !server(l.source) && !server(l.destination) {
			continue
		}
		if i == 0 {
			return none, 0, true
		}
		if outer := f.layer[0].size; outer > l.size && l.size > 0 {
			adds = outer - l.size
		}
		return f.wrap[i], adds, true
	}
	return "", 0, false
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

// wire are the ones of the devices on the way that stand for the wire: the underlay's ports, or all on one node.
func (j *judgement) wire() []network.Hop {
	all := j.crossed()
	ports := slices.DeleteFunc(slices.Clone(all), func(h network.Hop) bool { return h.Role != network.RolePort || h.Unseen })
	if len(ports) > 0 {
		return ports
	}
	return all
}

// wrappings holds what the load's packets were wrapped in against the plan.
func (j *judgement) wrappings(tallies map[network.Device]*tally) {
	seen := tally{wraps: map[string]int{}}
	for _, h := range j.wire() {
		if t := tallies[h.Device]; t != nil {
			for name, n := range t.wraps {
				seen.wraps[name] += n
			}
			j.path.Overhead = max(j.path.Overhead, t.least)
		}
	}
	j.path.Encapsulation = seen.other("")
	for _, h := range j.crossed() {
		t := tallies[h.Device]
		if t == nil || j.Observed {
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
func (j *judgement) sizes(large map[network.Device]unit.Bytes) {
	for _, h := range j.wire() {
		j.path.Largest = max(j.path.Largest, large[h.Device])
	}
	for _, h := range j.crossed() {
		limit := j.PathMTU
		switch {
		case h.Encrypted:
			limit += j.Overhead // what fills up the last block is no reason to be larger
		case h.Encapsulated:
			limit += j.Overhead - j.Encryption.Reserve
		}
		if large[h.Device] > limit {
			j.find("%s carried a packet of %d bytes; the plan's MTU there is %d", h.Device, int64(large[h.Device]), int64(limit))
		}
	}
}

// cut finds fragments on the wire. The load's own, where it has some, are inside the encapsulation.
func (j *judgement) cut(fragments map[network.Device]int) {
	own := j.Load.fragments(j.PathMTU)
	var where []string
	for _, h := range j.crossed() {
		if n := fragments[h.Device]; n > 0 && (!own || h.Encapsulated && !h.Encrypted) {
			where = append(where, fmt.Sprintf("%d on %s", n, h.Device))
		}
	}
	if len(where) > 0 {
		j.find("IP fragments among the sampled packets: %s; the plan's MTUs need none", strings.Join(where, ", "))
	}
}
