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
	begin := c.outcome.start
	if !measured {
		begin = c.clock.Ticks()
	}
	last := int64(1<<63 - 1)
	if span > 0 {
		last = begin + span
	}
	gap := c.order.gap
	for n := int64(0); limit == 0 || n < limit; n++ {
		var start int64
		if gap > 0 {
			start = begin + n*gap>>16
			if start >= last {
				break
			}
			c.waitUntil(start)
		} else {
			start = c.clock.Ticks()
		}
		if !c.exchange() {
			return false
		}
		end := c.clock.Ticks()
		if measured {
			c.latency.Record(end - start)
			c.outcome.counters.transactions++
			c.outcome.counters.bytes += 2 * int64(c.message)
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
	if measured {
		now := c.clock.Ticks()
		if gap > 0 && span > 0 {
			now = max(now, last) // the rest of the window was intended to be silent
		}
		c.endWindow(now)
	}
	return true
}

// exchange runs one transaction.
//
//go:nosplit
//go:norace
func (c *control) exchange() bool {
	switch c.kind {
	case StreamRR:
		return c.sendAll(c.connection[0].fd) && c.receiveAll(c.connection[0].fd)
	case DatagramRR:
		return c.exchangeDatagrams()
	default:
		return c.exchangeOnNewConnection()
	}
}

// sendAll sends one message.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (c *control) sendAll(fd int32) bool {
	for done := uintptr(0); ; {
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
func (c *control) receiveAll(fd int32) bool {
	for done := uintptr(0); ; {
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
