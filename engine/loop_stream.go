package engine

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"netdelta/internal/native"
)

// Each message of a stream begins with a byte that says whether it is the last of a burst. When the receiver has read the
// last, it answers with what it has read in all: then nothing of the burst is left on the way or unread, and the next burst
// of another cell is not disturbed by it.
const (
	markData byte = 0
	markLast byte = 1
)

// streamReport is the receiver's answer to the last message of a burst.
type streamReport struct{ bytes uint64 }

// streamMarks are what had been acknowledged, and read by the receiver, at points of a burst, in bytes. They are no locals,
// since the calls below them need the little stack there is.
type streamMarks struct{ first, before, after, reported uint64 }

// streamOut sends as fast as the connections take it. What counts is what the receiver's kernel has acknowledged between the
// two ends of the window: both are read from the sender's own sockets, so one clock measures it, and bytes that only fill
// buffers at either end don't count. Where the kernel takes bytes past TCP nothing is acknowledged: then a message counts
// when the receiver has read it, and the window begins and ends with empty buffers.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (c *control) streamOut() {
	var ok bool
	if c.stream.first, ok = c.acknowledged(); !ok || c.order.warmup > 0 && !c.streamFor(c.order.warmup, 0, false) {
		return
	}
	if c.stream.before, ok = c.acknowledged(); !ok {
		return
	}
	c.stream.reported = c.reported
	if c.order.warmup > 0 && c.bypassed && !c.streamEnd() {
		return
	}
	c.beginWindow()
	if !c.streamFor(c.order.duration, c.order.transactions, true) {
		return
	}
	c.outcome.end = c.clock.Ticks()
	if c.stream.after, ok = c.acknowledged(); !ok {
		return
	}
	c.endWindow(c.outcome.end)
	if !c.streamEnd() {
		return
	}
	last, ok := c.acknowledged()
	if !ok {
		return
	}
	c.outcome.moved = int64(last - c.stream.first)
	c.outcome.counters.bytes = int64(c.stream.after - c.stream.before)
	if c.bypassed {
		c.outcome.moved = int64(c.reported - c.stream.reported)
	}
	if c.order.duration == 0 || c.bypassed {
		// A given amount is delivered when the receiver has read it.
		c.outcome.end = c.clock.Ticks()
		c.outcome.counters.bytes = c.outcome.counters.transactions * int64(c.message)
	}
}

// acknowledged is the sum of the bytes that the peers have acknowledged since the connections were opened. It also finds out
// whether the bytes go past TCP, which then has sent none since the connections were opened.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (c *control) acknowledged() (sum uint64, ok bool) {
	c.bypassed = true
	for i := range c.conns {
		sent, bytes, errno := native.Progress(c.at(i).fd)
		if errno != 0 {
			return 0, c.fail(stepSend, errno)
		}
		if sent > 0 {
			c.bypassed = false
		}
		sum += bytes
	}
	return sum, true
}

// streamFor sends whole messages for a span (0: unlimited) or until limit messages are sent (0: unlimited).
//
//go:nosplit
//go:norace
//go:nocheckptr
func (c *control) streamFor(span, limit int64, measured bool) bool {
	_, last := c.bounds(span, measured)
	*(*byte)(c.out) = markData
	if c.conns > 1 {
		return c.streamMany(last, limit, measured)
	}
	for n := int64(0); limit == 0 || n < limit; n++ {
		if !c.sendAll(c.connection[0].fd) {
			return false
		}
		now := c.clock.Ticks()
		if measured {
			c.outcome.counters.transactions++
			if now-c.outcome.start >= (c.outcome.secondCount+1)*c.order.second {
				c.streamTick(now)
			}
		}
		if c.stopped() {
			return c.fail(stepStopped, 0)
		}
		if now >= last {
			break
		}
	}
	return true
}

// streamTick notes the counters of a second; bytes are those handed to the kernel.
//
//go:nosplit
//go:norace
func (c *control) streamTick(now int64) {
	c.outcome.counters.bytes = c.outcome.counters.transactions * int64(c.message)
	c.tick(now)
}

// streamMany sends on each connection that has room, one message in turn.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (c *control) streamMany(last, limit int64, measured bool) bool {
	epoll, errno := native.EpollCreate()
	if errno != 0 {
		return c.fail(stepPoll, errno)
	}
	c.many.epoll = epoll
	ok := true
	for i := int32(0); ok && i < c.conns; i++ {
		c.at(i).sent = 0
		ok = c.watch(c.at(i), unix.EPOLL_CTL_ADD, unix.EPOLLOUT)
	}
	ok = ok && c.streamTurns(epoll, last, limit, measured)
	native.Close(epoll)
	// What has been begun is ended, so that messages stay whole.
	for i := int32(0); ok && i < c.conns; i++ {
		if k := c.at(i); k.sent > 0 {
			ok = c.sendRest(k.fd, k.sent)
		}
	}
	return ok
}

//go:nosplit
//go:norace
//go:nocheckptr
func (c *control) streamTurns(epoll int32, last, limit int64, measured bool) bool {
	for done := int64(0); ; {
		n, errno := native.EpollWait(epoll, unsafe.Pointer(c.events), eventRoom, 50_000_000)
		if errno != 0 && errno != unix.EINTR {
			return c.fail(stepPoll, errno)
		}
		for i := range n {
			k := c.at(c.events[uint(i)%eventRoom].Fd)
			sent, errno := native.Send(k.fd, unsafe.Add(c.out, k.sent), c.message-k.sent, unix.MSG_DONTWAIT)
			if errno == unix.EAGAIN || errno == unix.EINTR {
				continue
			}
			if errno != 0 {
				return c.fail(stepSend, errno)
			}
			if k.sent += sent; k.sent < c.message {
				continue
			}
			k.sent = 0
			if done++; limit > 0 && done >= limit {
				if measured {
					c.outcome.counters.transactions++
				}
				return true
			}
			if measured {
				c.outcome.counters.transactions++
			}
		}
		now := c.clock.Ticks()
		if measured {
			c.streamTick(now)
		}
		if c.stopped() {
			return c.fail(stepStopped, 0)
		}
		if now >= last {
			return true
		}
	}
}

// streamEnd marks the end of the burst on all connections and waits for the receiver's answers.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (c *control) streamEnd() bool {
	*(*byte)(c.out) = markLast
	for i := range c.conns {
		if !c.sendAll(c.at(i).fd) {
			return false
		}
	}
	c.reported = 0
	for i := range c.conns {
		var report streamReport
		for done := uintptr(0); done < unsafe.Sizeof(report); {
			n, errno := native.Receive(c.at(i).fd, unsafe.Add(unsafe.Pointer(&report), done), unsafe.Sizeof(report)-done, 0)
			if errno == unix.EINTR && !c.stopped() {
				continue
			}
			if errno != 0 {
				return c.fail(stepReport, errno)
			}
			if n == 0 {
				return c.fail(stepPeerClosed, 0)
			}
			done += n
		}
		c.reported += report.bytes
	}
	return true
}
