package engine

import (
	"math"

	"golang.org/x/sys/unix"

	"netdelta/internal/clock"
	"netdelta/internal/native"
)

// probed is what a trial of a search gave, in addition to its counters. Times are in nanoseconds.
type probed struct {
	// late is how late the most punctual datagram of the last eighth was sent.
	late int64
	// span, least, tail and median are the receiver's (flowReply).
	span, least, tail, median int64
}

// tailShare is the part of a trial in which a queue that does not go away is looked for: the last one in so many.
const tailShare = 8

// probe sends the datagrams of a trial when they are due, as long as the trial lasts. What is due is never put off to its
// end: a sender that falls behind shows in how late it is, and in how much it has sent.
//
// A full queue of this host is a loss on the way, not a reason to wait: a sender that waits would be taken for a slow one.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (c *control) probe(h *flowHeader) {
	c.beginWindow()
	o, gap := &c.order, c.order.gap
	begin := c.outcome.start
	last := begin + o.duration
	// At least the last datagram.
	tail := min(last-o.duration/tailShare, last-(gap>>16)-1)
	c.probed = probed{late: o.duration}
	h.kind = flowProbe
	flow := int32(0)
	for n := int64(0); ; n++ {
		due := begin + n*gap>>16
		now := c.await(min(due, last))
		if due >= last || now >= last {
			break
		}
		if due >= tail {
			h.kind = flowTail
			c.probed.late = min(c.probed.late, now-due)
		}
		h.time = due
		if c.stopped() || !c.floodOne(h, flow, unix.MSG_DONTWAIT) {
			c.failStopped()
			return
		}
		if flow++; flow == c.conns {
			flow = 0
		}
	}
	c.endWindow(max(c.clock.Ticks(), last))
	if !c.floodEnd(h) {
		return
	}
	r := (*flowReply)(c.in)
	p := &c.probed
	p.span, p.least, p.tail, p.median = r.span, r.least, r.tail, r.median
}

// failStopped notes that the burst was given up, unless it broke before.
//
//go:nosplit
//go:norace
func (c *control) failStopped() {
	if c.outcome.step == stepNone {
		c.fail(stepStopped, 0)
	}
}

// await waits for a point in time, asleep while it is far, and then by letting others run: the receiver may share this
// processor, and waking up from a sleep takes longer than most gaps between datagrams.
//
//go:nosplit
//go:norace
func (c *control) await(until int64) int64 {
	const near = 200_000 // ns
	now := c.clock.Ticks()
	for now < until && !c.stopped() {
		if left := c.clock.Nanoseconds(until - now); left > 2*near {
			native.Sleep(min(left-near, 50_000_000))
		} else {
			native.Yield()
		}
		now = c.clock.Ticks()
	}
	return now
}

// probes is what a receiver notes of the datagrams of a trial. Times are in nanoseconds.
type probes struct {
	first, last int64 // arrivals
	// least is the shortest time from when a datagram was due to its arrival, tail the shortest of the last eighth.
	least, tail int64
	count       int64
	delays      delays
}

//go:nosplit
//go:norace
func (p *probes) reset() {
	p.count = 0
	p.delays.reset()
}

// note takes one datagram, now.
//
//go:nosplit
//go:norace
func (p *probes) note(h *flowHeader) {
	var kernel clock.Clock
	now := kernel.Ticks()
	delay := now - h.time
	if p.count == 0 {
		p.first, p.least, p.tail = now, delay, math.MaxInt64
	}
	p.count++
	p.last, p.least = now, min(p.least, delay)
	p.delays.add(delay)
	if h.kind == flowTail {
		p.tail = min(p.tail, delay)
	}
}

// report fills in what a trial's report says of time.
//
//go:nosplit
//go:norace
func (p *probes) report(r *flowReply, sameClock bool) {
	if p.count == 0 {
		return
	}
	r.span, r.least, r.tail = p.last-p.first, p.least, p.tail
	if sameClock {
		r.median = p.delays.median()
	}
}

// A histogram of delays has a counter for each nanosecond below delayFine, and delayFine/2 in each doubling above it.
const (
	delayFine     = 128
	delayFineBits = 7
	delayCounters = 2048 // up to 34 s
)

// delays is a histogram small enough to be cleared and read inside a loop: its places are 1.6% wide, and values are taken to
// be spread evenly within one.
type delays struct {
	counts [delayCounters]uint32
	total  int64
}

//go:nosplit
//go:norace
func (d *delays) reset() {
	for i := range d.counts {
		d.counts[i] = 0
	}
	d.total = 0
}

//go:nosplit
//go:norace
func (d *delays) add(ns int64) {
	d.counts[delayPlace(ns)%delayCounters]++
	d.total++
}

// delayPlace is the place of a value; what is out of range is at its end.
//
//go:nosplit
//go:norace
func delayPlace(ns int64) uint64 {
	v := uint64(max(ns, 0))
	shift := uint64(0)
	for v>>shift >= delayFine {
		shift++
	}
	return min(shift<<(delayFineBits-1)+v>>shift, delayCounters-1)
}

// delayValue is the smallest value of a place.
//
//go:nosplit
//go:norace
func delayValue(place uint64) int64 {
	if place < delayFine {
		return int64(place)
	}
	shift := place>>(delayFineBits-1) - 1
	return int64((place - shift<<(delayFineBits-1)) << shift)
}

// median is the value in the middle; 0 without any.
//
//go:nosplit
//go:norace
func (d *delays) median() int64 {
	rank := (d.total + 1) / 2
	below := int64(0)
	for i := range uint64(delayCounters) {
		n := int64(d.counts[i])
		if below+n >= rank && n > 0 {
			low, next := delayValue(i), delayValue(i+1)
			return low + (2*(rank-below)-1)*(next-low)/(2*n)
		}
		below += n
	}
	return 0
}
