package engine

import (
	"sync/atomic"
	"unsafe"

	"netdelta/internal/native"
)

// runClient is the thread of a client: it sleeps until there is an order, carries it out, says so, and sleeps again.
//
//go:nosplit
//go:norace
//go:nocheckptr
func runClient(c *control) {
	native.EnterSyscall()
	atomic.StoreInt32(&c.thread, native.ThreadID())
	known := uint32(0)
	for {
		for atomic.LoadUint32(&c.command) == known {
			native.FutexWait(&c.command, known)
		}
		known++
		if c.order.quit != 0 {
			break
		}
		c.burst()
		report := uint64(1)
		native.Write(c.done, unsafe.Pointer(&report), 8)
	}
	native.ExitSyscall()
}

//go:nosplit
//go:norace
//go:nocheckptr
func (c *control) burst() {
	c.outcome = outcome{}
	c.latency.Reset()
	c.transaction = 0
	// Around the whole burst, so that the measured part has nothing of it. What is deep below has little stack left for locals.
	c.outcome.span, c.outcome.cpu = -c.clock.Ticks(), -native.ThreadCPU()
	switch {
	case c.kind == StreamOut:
		c.streamOut()
	case c.kind == DatagramOut:
		c.datagramOut()
	case c.conns > 1:
		c.roundRobin()
	default:
		c.oneByOne()
	}
	c.outcome.cpu += native.ThreadCPU()
	c.outcome.span += c.clock.Ticks()
}

// beginWindow starts the measured part of a burst. What was counted before it was done all the same.
//
//go:nosplit
//go:norace
func (c *control) beginWindow() {
	c.outcome.unmeasured.add(c.outcome.counters)
	c.outcome.counters = counters{}
	c.outcome.secondCount = 0
	c.outcome.switches = native.InvoluntarySwitches()
	c.outcome.start = c.clock.Ticks()
}

// endWindow ends the measured part of a burst at the given time.
//
//go:nosplit
//go:norace
func (c *control) endWindow(end int64) {
	c.outcome.end = end
	c.outcome.switches = native.InvoluntarySwitches() - c.outcome.switches
}

// bounds are when a part of a burst begins, which is its window or what comes before, and from when on no transaction of it starts: with a
// span of 0, never.
//
//go:nosplit
//go:norace
func (c *control) bounds(span int64, measured bool) (begin, last int64) {
	begin = c.outcome.start
	if !measured {
		begin = c.clock.Ticks()
	}
	if span == 0 {
		return begin, 1<<63 - 1
	}
	return begin, begin + span
}

// endPart ends the window, if the part is that.
//
//go:nosplit
//go:norace
func (c *control) endPart(span, last int64, measured bool) {
	if !measured {
		return
	}
	now := c.clock.Ticks()
	if c.order.gap > 0 && span > 0 {
		now = max(now, last) // the rest of the window was intended to be silent
	}
	c.endWindow(now)
}

// tick notes the counters whenever another second of the burst has passed.
//
//go:nosplit
//go:norace
func (c *control) tick(now int64) {
	o := &c.outcome
	for o.secondCount < maxSeconds && now-o.start >= (o.secondCount+1)*c.order.second {
		s := &c.seconds[uint64(o.secondCount)%maxSeconds]
		s.transactions, s.bytes, s.lost = o.counters.transactions, o.counters.bytes, o.counters.lost
		o.secondCount++
	}
}

// waitUntil waits for a point in time: asleep while it is far, and then by looking at the clock, since waking up takes
// microseconds and would count as latency.
//
//go:nosplit
//go:norace
func (c *control) waitUntil(when int64) {
	const spin = 30_000 // ns
	for {
		now := c.clock.Ticks()
		if now >= when || c.stopped() {
			return
		}
		if left := c.clock.Nanoseconds(when - now); left > 2*spin {
			// A long sleep in parts, so that the Go side may end it.
			native.Sleep(min(left-spin, 50_000_000))
		}
	}
}
