package engine

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"netdelta/internal/native"
)

// oneByOne runs a burst of one transaction after another: on one connection, or on a new connection for each.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (c *control) oneByOne() {
	if c.order.warmup > 0 && !c.oneByOneFor(c.order.warmup, 0, false) {
		return
	}
	c.beginWindow()
	c.oneByOneFor(c.order.duration, c.order.transactions, true)
}

// oneByOneFor runs transactions for a span (0: unlimited) or until limit of them are done (0: unlimited). In an open loop
// every transaction whose intended start lies in the span is run, however late: leaving out those that a slow server has
// delayed would hide the delay.
//
//go:nosplit
//go:norace
func (c *control) oneByOneFor(span, limit int64, measured bool) bool {
	begin, last := c.bounds(span, measured)
	gap := c.order.gap
	for n := int64(0); limit == 0 || n < limit; n++ {
		var start int64
		if gap > 0 {
			start = begin + n*gap>>16
			if start+c.roundingOf(gap) >= last {
				break
			}
			c.waitUntil(start)
		}
		if !c.transact() {
			return false
		}
		end := c.exchange.End
		if gap == 0 {
			start = c.exchange.Start
		}
		failed := c.kind == HTTPGet && c.web.failed // and counted already
		if !failed {
			c.outcome.counters.transactions++
			c.outcome.counters.bytes += 2 * int64(c.message)
		}
		if measured && !failed {
			c.latency.Record(end - start)
			if end-c.outcome.start >= (c.outcome.secondCount+1)*c.order.second {
				c.tick(end)
			}
		}
		if c.stopped() {
			return c.fail(stepStopped, 0)
		}
		if gap == 0 && end >= last {
			break
		}
	}
	c.endPart(span, last, measured)
	return true
}

// roundingOf is the share of a gap by which a start may come too early before the end of a span, as ticks are rounded: so
// that 500 starts a second are 100 in 200 ms, and not sometimes 101.
//
//go:nosplit
//go:norace
func (c *control) roundingOf(gap int64) int64 { return gap >> (16 + 4) }

// transact runs one transaction, and notes in c.exchange when it began and when it ended.
//
//go:nosplit
//go:norace
func (c *control) transact() bool {
	e := &c.exchange
	if c.kind == HTTPGet {
		return c.get()
	}
	if c.kind == ConnectRR {
		e.Start = c.clock.Ticks()
		ok := c.exchangeOnNewConnection()
		e.End = c.clock.Ticks()
		return ok
	}
	stamped := native.Stamped && c.clock.Counter()
	begin := int64(0)
	if !stamped {
		begin = c.clock.Ticks()
	}
	if c.kind == DatagramRR {
		out := (*header)(c.out)
		out.burst, out.number = c.order.number, c.transaction
		c.transaction++
		c.outcome.counters.sent++
	}
	native.RoundTrip(e)
	if stamped {
		begin = e.Start
	}
	whole := e.Sent == e.Size && e.Got == e.Size && (c.kind == StreamRR || *(*header)(c.in) == *(*header)(c.out))
	if whole && stamped {
		return true
	}
	if !whole && !c.fix() {
		return false
	}
	e.Start, e.End = begin, c.clock.Ticks()
	return true
}

// fix ends a transaction that two system calls did not end.
//
//go:nosplit
//go:norace
func (c *control) fix() bool {
	e := &c.exchange
	if c.kind == DatagramRR {
		return c.awaitDatagram(e)
	}
	fd := int32(e.FD)
	if e.Sent != e.Size {
		if !c.again(e.Sent, stepSend) || !c.sendRest(fd, uintptr(max(e.Sent, 0))) {
			return false
		}
		e.Got = -int64(unix.EINTR) // nothing was received so far
	}
	if e.Got == 0 {
		return c.fail(stepPeerClosed, 0)
	}
	return c.again(e.Got, stepReceive) && c.receiveRest(fd, uintptr(max(e.Got, 0)))
}

// again says whether a call with this result may be continued.
//
//go:nosplit
//go:norace
func (c *control) again(result int64, at step) bool {
	errno := native.Errno(-result)
	if result >= 0 || (errno == unix.EINTR || errno == unix.EAGAIN) && !c.stopped() {
		return true
	}
	return c.fail(at, errno)
}

// sendAll sends one message.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (c *control) sendAll(fd int32) bool { return c.sendRest(fd, 0) }

// sendRest sends what a message still lacks.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (c *control) sendRest(fd int32, done uintptr) bool {
	for {
		n, errno := native.Send(fd, unsafe.Add(c.out, done), c.message-done, 0)
		if errno != 0 {
			if (errno == unix.EINTR || errno == unix.EAGAIN) && !c.stopped() {
				continue
			}
			return c.fail(stepSend, errno)
		}
		if done += n; done == c.message {
			return true
		}
	}
}

// receiveAll receives one message.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (c *control) receiveAll(fd int32) bool { return c.receiveRest(fd, 0) }

// receiveRest receives what a message still lacks.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (c *control) receiveRest(fd int32, done uintptr) bool {
	for {
		n, errno := native.Receive(fd, unsafe.Add(c.in, done), c.message-done, 0)
		if errno != 0 {
			if (errno == unix.EINTR || errno == unix.EAGAIN) && !c.stopped() {
				continue
			}
			return c.fail(stepReceive, errno)
		}
		if n == 0 {
			return c.fail(stepPeerClosed, 0)
		}
		if done += n; done == c.message {
			return true
		}
	}
}
