package engine

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"netdelta/internal/native"
)

// The kinds of datagram of a UDP stream.
const (
	flowWarmup uint32 = iota + 1
	flowData
	flowEnd
	flowReport
	// flowProbe is a datagram of a trial of a search, flowTail one of its last eighth.
	flowProbe
	flowTail
)

// flowHeader is how each datagram of a UDP stream begins. The end of a burst carries the header alone.
type flowHeader struct {
	kind    uint32
	burst   uint32
	session uint64 // tells one client from another; its upper half says whose clock the times are of
	flow    uint32
	number  uint32 // of the datagram within its flow and burst, from 1: enough for an hour of the fastest flow
	time    int64  // of a probe: when it was due, in nanoseconds of the kernel's clock
}

// FlowHeaderSize is the smallest datagram of a UDP stream.
const FlowHeaderSize = unsafe.Sizeof(flowHeader{})

// flowReport is the receiver's answer to the end of a burst: what it received of the measured part.
type flowReply struct {
	header    flowHeader
	received  uint64
	bytes     uint64
	reordered uint64
	// Of a trial of a search, in nanoseconds: from the first arrival to the last; what the quickest datagram of all and the
	// quickest of the last eighth took from when they were due, by two clocks that may be apart; and what they took in the
	// median, 0 where sender and receiver don't have the same clock.
	span, least, tail, median int64
}

const flowReplySize = unsafe.Sizeof(flowReply{})

// sink is the state of the receiver of a UDP stream.
type sink struct {
	session uint64
	burst   uint32
	highest [MaxConnections]uint32 // by flow
	reply   flowReply
	probes  probes
}

// begin forgets the burst before.
//
//go:nosplit
//go:norace
func (s *sink) begin(h *flowHeader) {
	s.session, s.burst = h.session, h.burst
	for i := range s.highest {
		s.highest[i] = 0
	}
	s.reply = flowReply{header: *h}
	s.reply.header.kind = flowReport
	s.probes.reset()
}

// datagramOut sends datagrams at a given rate, in turn on each flow, and asks the receiver what has come.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (c *control) datagramOut() {
	h := (*flowHeader)(c.out)
	h.burst = c.order.number
	for i := range c.conns {
		c.at(i).got = 0
	}
	if c.order.probing {
		c.probe(h)
		return
	}
	h.kind = flowWarmup
	if c.order.warmup > 0 && !c.floodFor(h, c.order.warmup, 0, false) {
		return
	}
	h.kind = flowData
	c.beginWindow()
	if !c.floodFor(h, c.order.duration, c.order.transactions, true) {
		return
	}
	c.floodEnd(h)
}

// floodFor sends datagrams when they are due. The thread sleeps between them, since it may share its processor with the
// receiver, and sends in one go what has become due meanwhile.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (c *control) floodFor(h *flowHeader, span, limit int64, measured bool) bool {
	begin, last := c.bounds(span, measured)
	now := begin
	flow := int32(0)
	for n := int64(0); limit == 0 || n < limit; n++ {
		due := begin + n*c.order.gap>>16
		if due+c.roundingOf(c.order.gap) >= last || now >= last {
			break
		}
		for now < due {
			native.Sleep(min(max(c.clock.Nanoseconds(due-now), 1), 50_000_000))
			if now = c.clock.Ticks(); c.stopped() {
				return c.fail(stepStopped, 0)
			}
		}
		if !c.floodOne(h, flow, 0) {
			return false
		}
		if flow++; flow == c.conns {
			flow = 0
		}
		now = c.clock.Ticks()
		if measured {
			c.tick(now)
		}
		if c.stopped() {
			return c.fail(stepStopped, 0)
		}
	}
	if measured {
		if span > 0 {
			now = max(now, last)
		}
		c.endWindow(now)
	}
	return true
}

//go:nosplit
//go:norace
//go:nocheckptr
func (c *control) floodOne(h *flowHeader, flow int32, flags uintptr) bool {
	k := c.at(flow)
	k.got++
	h.flow, h.number = uint32(flow), uint32(k.got)
	for {
		_, errno := native.Send(k.fd, c.out, c.message, flags)
		if errno == unix.EINTR && !c.stopped() {
			continue
		}
		if errno != 0 && !lossy(errno) {
			return c.fail(stepSend, errno)
		}
		break
	}
	c.outcome.counters.sent++
	return true
}

// floodEnd asks the receiver for its report until it comes: question and answer are datagrams too, and may be lost.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (c *control) floodEnd(h *flowHeader) bool {
	fd := c.connection[0].fd
	h.kind, h.number = flowEnd, 0
	reply := (*flowReply)(c.in)
	for {
		if _, errno := native.Send(fd, c.out, FlowHeaderSize, 0); errno != 0 && !lossy(errno) {
			return c.fail(stepReport, errno)
		}
		n, errno := native.Receive(fd, c.in, flowReplySize, 0)
		// An answer to an earlier burst's question is no reason to ask again.
		for errno == 0 && !c.stopped() && (n != flowReplySize || !reply.answers(h)) {
			n, errno = native.Receive(fd, c.in, flowReplySize, 0)
		}
		switch {
		case c.stopped():
			return c.fail(stepReport, 0)
		case errno == 0:
			o := &c.outcome.counters
			o.transactions, o.bytes, o.reordered = int64(reply.received), int64(reply.bytes), int64(reply.reordered)
			o.lost = max(o.sent-o.transactions, 0)
			return true
		case !lossy(errno):
			return c.fail(stepReport, errno)
		}
	}
}

//go:nosplit
//go:norace
func (r *flowReply) answers(h *flowHeader) bool {
	return r.header.kind == flowReport && r.header.session == h.session && r.header.burst == h.burst
}

// serveFlood receives the datagrams of a UDP stream, counts them, and answers the end of each burst.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (c *control) serveFlood() {
	var from address
	room := max(c.message, flowReplySize)
	h := (*flowHeader)(c.in)
	s := &c.sink
	for !c.stopped() {
		from.length = uint32(len(from.raw))
		n, errno := native.ReceiveFrom(c.listener, c.in, room, unsafe.Pointer(&from.raw), &from.length)
		if errno != 0 && !lossy(errno) {
			c.fail(stepReceive, errno)
			return
		}
		if errno != 0 || n < FlowHeaderSize || h.flow >= MaxConnections || !c.knows(&from) {
			continue
		}
		if h.session == s.session && int32(h.burst-s.burst) < 0 {
			continue // a straggler must not end the burst that runs
		}
		if h.session != s.session || h.burst != s.burst {
			s.begin(h)
		}
		switch h.kind {
		case flowProbe, flowTail:
			s.probes.note(h)
			fallthrough
		case flowData:
			s.reply.received++
			s.reply.bytes += uint64(n)
			c.served.transactions++
			c.served.bytes += int64(n)
			if highest := &s.highest[h.flow%MaxConnections]; h.number > *highest {
				*highest = h.number
			} else {
				s.reply.reordered++
				c.served.reordered++
			}
		case flowEnd:
			s.probes.report(&s.reply, c.domain != 0 && h.session>>32 == uint64(c.domain))
			native.SendTo(c.listener, unsafe.Pointer(&s.reply), flowReplySize, unsafe.Pointer(&from.raw), uintptr(from.length))
		}
	}
}
