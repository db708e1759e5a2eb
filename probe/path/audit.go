package path

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/unit"
)

// Thresholds of an audit. They are tighter than a proof's, since much more was moved, and looser in bytes, since in
// minutes there are more requests for addresses.
const (
	auditLeast      = 0.95
	auditStrayShare = 0.02
	auditStrayFloor = 64 << 10
)

// Moved is what a cell moved between two pods in a phase, bytes of payload that arrived.
type Moved struct {
	From, To            testbed.Pod
	Protocol            network.Protocol
	Requests, Responses unit.Bytes
	// Connections are the ones of TCP that were opened, and closed, in the phase.
	Connections int64
	// Opaque, Both and Peers are as in Load.
	Opaque bool
	Both   unit.Bytes
	Peers  []testbed.Pod
}

// Flow is what was moved along a way and back.
type Flow struct {
	Request, Response   []network.Hop
	Requests, Responses unit.Bytes
	// Connections are the ones of TCP that were opened, and closed, meanwhile.
	Connections int64
	// Both is the least that passed the devices of Shared, both ways together: of loads that are opaque.
	Both   unit.Bytes
	Shared []network.Device
}

// Audit is what the counters of a whole phase say of a testbed. It can't tell which of the cells is meant.
type Audit struct {
	Findings []string
	// Weak names what could not be told.
	Weak []string
}

// Enter adds the audit of a testbed to the proof of a cell on it.
func (a Audit) Enter(p *result.Path) {
	p.Findings = append(p.Findings, a.Findings...)
	p.Weak = append(p.Weak, a.Weak...)
	p.OK = len(p.Findings) == 0
}

// Begin reads the counters at the start of the measured phase: after the last Prove.
func (p *PlannedProver) Begin(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	counters, err := p.o.Counters(ctx)
	if err != nil {
		return fmt.Errorf("begin to audit the devices: %w", err)
	}
	p.start = counters
	return nil
}

// End reads the counters at the end of the phase that Begin began, and holds them against what the cells moved in it.
func (p *PlannedProver) End(ctx context.Context, moved []Moved) (Audit, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.start == nil {
		return Audit{}, errors.New("audit the devices: the audit was not begun")
	}
	end, err := p.o.Counters(ctx)
	if err != nil {
		return Audit{}, fmt.Errorf("audit the devices: %w", err)
	}
	flows := make([]Flow, len(moved))
	for i, m := range moved {
		flows[i] = Flow{
			Request: p.o.Path(m.From, m.To, m.Protocol), Response: p.o.Path(m.To, m.From, m.Protocol), Requests: m.Requests, Responses: m.Responses,
			Connections: m.Connections, Both: m.Both,
		}
		if m.Opaque {
			flows[i].Shared = p.shared(m.From, append([]testbed.Pod{m.To}, m.Peers...), m.Protocol)
		}
	}
	plan := p.o.Plan()
	if plan.Found {
		ways := [][]network.Hop{p.background}
		for _, f := range flows {
			ways = append(ways, f.Request, f.Response)
		}
		p.start, end = onWay(p.start, ways...), onWay(end, ways...)
	}
	return Balance(foreseen(plan, p.start), foreseen(plan, end), plan.Bonds(), flows, p.background), nil
}

// Balance holds what devices carried between two readings against the payload of all flows: a device on a way must have
// carried what passed it, and one on no way must have been as good as quiet. The links of bonds count for their bond.
// Ways aside, of daemons among themselves, may have carried anything.
func Balance(before, after map[network.Device]testbed.Counters, bonds []network.Bond, flows []Flow, aside []network.Hop) Audit {
	b := balance{
		needs: map[crossing]unit.Bytes{}, planned: map[network.Device]bool{}, changed: bonded(changes(before, after), bonds),
	}
	for _, f := range flows {
		b.moved += f.Requests + f.Responses + f.Both
		for x, bytes := range need(f.Request, f.Response, Load{Requests: f.Requests, Responses: f.Responses}) {
			b.needs[x] += bytes
			b.planned[x.Device] = true
		}
	}
	b.moved = max(b.moved, carried(flows, b.changed))
	allow(b.needs, aside)
	for x := range b.needs {
		b.planned[x.Device] = true
	}
	b.shaken = shaken(flows)
	b.devices()
	for _, d := range detours(b.changed, b.needs, b.tolerated) {
		b.find("%s", d)
	}
	b.crossings()
	b.opaque(flows)
	return b.Audit
}

// balance is an audit in the making.
type balance struct {
	Audit
	needs   map[crossing]unit.Bytes
	planned map[network.Device]bool
	changed map[network.Device]change
	moved   unit.Bytes
	shaken  unit.Bytes
}

func (b *balance) find(format string, args ...any) {
	b.Findings = append(b.Findings, fmt.Sprintf(format, args...))
}

// devices names those that were lost, and those on no way that carried the payload.
func (b *balance) devices() {
	for _, d := range inOrder(b.changed) {
		c := b.changed[d]
		switch {
		case c.lost != "" && b.planned[d]:
			b.find("%s", c.loss(d))
		case c.lost != "":
			b.Weak = append(b.Weak, c.loss(d))
		case c.wrapped:
			b.Weak = append(b.Weak, c.correction(d))
		}
		if t := c.both(); !b.planned[d] && float64(t.bytes) > b.tolerated(d) {
			b.find("%s, which is on no way that the plan says, carried %d bytes in %d packets while %d bytes of payload were moved",
				d, t.bytes, t.packets, int64(b.moved))
		}
	}
}

// tolerated is how many bytes a device may carry that no way has pass it.
func (b *balance) tolerated(network.Device) float64 {
	return max(auditStrayShare*float64(b.moved), auditStrayFloor) + float64(b.shaken)
}

// crossings finds devices that carried less than passed them.
func (b *balance) crossings() {
	for _, x := range slices.SortedFunc(maps.Keys(b.needs), byCrossing) {
		c, there := b.changed[x.Device]
		if !there {
			b.find("%s, on a way that the plan says, is not there", x.Device)
			continue
		}
		t := c.of(x.sends)
		if c.lost != "" || float64(t.bytes) >= auditLeast*float64(b.needs[x]) {
			continue
		}
		if b.unseenWraps(x, t) {
			b.Weak = append(b.Weak, fmt.Sprintf("%s seems to count in 32 bits and to have gone past its end more than once: %d bytes in %d packets for %d bytes of payload",
				x.Device, t.bytes, t.packets, int64(b.needs[x])))
			continue
		}
		b.find("%s %s %d bytes in %d packets; the plan had %d bytes of payload pass it", x.Device, x.verb(), t.bytes, t.packets, int64(b.needs[x]))
	}
}

// unseenWraps tells whether a device that carried too little may have counted in 32 bits and wrapped between the readings:
// its packets are enough for the payload, its bytes are not.
func (b *balance) unseenWraps(x crossing, t traffic) bool {
	const frame = 1 << 16 // the largest that a device counts as one packet
	payload := uint64(b.needs[x])
	return payload > math.MaxUint32/2 && t.bytes <= math.MaxUint32 && t.packets >= payload/frame
}

// Reading is what the kernel had counted at one moment.
type Reading struct {
	Counters map[network.Device]testbed.Counters
	Stacks   map[network.Space]testbed.Stack
}

// change is what a device counted between two readings.
type change struct {
	sent, received traffic
	// lost says why the change is not known, "" if it is: the device "vanished", "was made anew", "is not there".
	lost string
	// wrapped says that a counter went past its end and was corrected.
	wrapped bool
}

// traffic is what a device carried in one direction.
type traffic struct{ packets, bytes uint64 }

func (t traffic) plus(o traffic) traffic { return traffic{t.packets + o.packets, t.bytes + o.bytes} }

// both are the ones of both directions.
func (c change) both() traffic { return c.sent.plus(c.received) }

// of is the direction that sends, or the one that receives.
func (c change) of(sends bool) traffic {
	if sends {
		return c.sent
	}
	return c.received
}

// changes holds two readings against each other, device by device.
func changes(before, after map[network.Device]testbed.Counters) map[network.Device]change {
	all := map[network.Device]change{}
	for d, b := range before {
		a, there := after[d]
		if !there {
			all[d] = change{lost: "vanished"}
			continue
		}
		all[d] = changeOf(b, a)
	}
	for d, a := range after {
		if _, there := before[d]; !there {
			c := changeOf(testbed.Counters{Index: a.Index}, a) // it began at zero
			c.lost = "was made"
			all[d] = c
		}
	}
	return all
}

// changeOf is what a device counted between two readings. Some drivers count in 32 bits: a counter that fell from the upper
// half of that range is taken to have wrapped, any other fall shows that the device began anew.
func changeOf(before, after testbed.Counters) change {
	if before.Index != after.Index {
		return change{lost: "was made anew"}
	}
	var c change
	restarted := false
	for _, v := range []struct {
		before, after uint64
		into          *uint64
	}{
		{before.SentPackets, after.SentPackets, &c.sent.packets}, {before.SentBytes, after.SentBytes, &c.sent.bytes},
		{before.ReceivedPackets, after.ReceivedPackets, &c.received.packets},
		{before.ReceivedBytes, after.ReceivedBytes, &c.received.bytes},
	} {
		const end, half = math.MaxUint32 + 1, (math.MaxUint32 + 1) / 2
		switch {
		case v.after >= v.before:
			*v.into = v.after - v.before
		case v.before >= half && v.before < end && v.after < half:
			*v.into, c.wrapped = end-v.before+v.after, true
		default:
			restarted = true
		}
	}
	if restarted {
		return change{lost: "was made anew, or its counters were set back,"}
	}
	return c
}

// loss is the sentence about a device whose change is not known.
func (c change) loss(d network.Device) string {
	return fmt.Sprintf("%s %s while it was watched", d, c.lost)
}

// correction is the sentence about a counter that wrapped.
func (c change) correction(d network.Device) string {
	return fmt.Sprintf("%s counts in 32 bits and went past its end while it was watched: corrected", d)
}

// bonded takes the links of bonds together: what a bond carried is what its links carried, by their own counters. A bond
// of which one link is not known is not known either.
func bonded(changed map[network.Device]change, bonds []network.Bond) map[network.Device]change {
	for _, b := range bonds {
		whole, there := changed[b.Device]
		if !there {
			continue
		}
		sum := change{lost: whole.lost}
		for _, link := range b.Members() {
			c, there := changed[link]
			switch {
			case !there && sum.lost == "":
				sum.lost = fmt.Sprintf("is without its link %s, as it seems,", link.Name)
			case c.lost != "" && sum.lost == "":
				sum.lost = fmt.Sprintf("is not known, since its link %s %s", link.Name, c.lost)
			}
			sum.sent, sum.received = sum.sent.plus(c.sent), sum.received.plus(c.received)
			sum.wrapped = sum.wrapped || c.wrapped
			delete(changed, link)
		}
		changed[b.Device] = sum
	}
	return changed
}

// connecting is how many bytes the packets that open and close a TCP connection have on one device, both ways: seven at most, with
// all headers and the options that Linux gives them, and as much again for one that is sent anew.
const connecting = 2 * 7 * (ethernetHeader + ipv6Header + 40)

// past tells whether the plan takes the load past all devices. Then the proof is that none of them carried it: it arrived,
// and so it went the other way.
func (j *judgement) past() bool { return len(j.Request) == 0 && len(j.Response) == 0 }

// shakes is what a device may have carried of connections that came and went while the load was watched, of which only
// the payload goes past the devices.
func (j *judgement) shakes() float64 {
	if !j.past() {
		return 0
	}
	return float64(j.Load.Connections) * float64(connecting)
}

// passed finds sampled packets with payload of a load that the plan takes past all devices.
func (j *judgement) passed() {
	if !j.past() {
		return
	}
	j.path.Encapsulation = none
	for _, d := range inOrder(j.changed) {
		if n := j.on(d).payload; n > 0 {
			j.find("%s carried %d sampled packets with payload; the plan takes it past all devices", d, n)
		}
	}
}

// carries tells whether a packet has payload.
func (f frame) carries() bool { return f.headers > 0 && f.layer[0].size > f.headers }

// shaken is what connections may have left on devices that the payload of flows goes past.
func shaken(flows []Flow) unit.Bytes {
	sum := unit.Bytes(0)
	for _, f := range flows {
		if len(f.Request) == 0 {
			sum += unit.Bytes(f.Connections) * connecting
		}
	}
	return sum
}
