package engine

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"netdelta/internal/native"
)

// many is the state of a burst over several connections.
type many struct {
	epoll    int32
	begin    int64 // of this part of the burst
	last     int64 // no transaction starts from here on
	limit    int64
	issued   int64
	open     int32 // transactions under way
	next     int32 // connection to look at next for a free one
	measured bool
}

// roundRobin runs a burst over several connections, with a transaction under way on each (closed loop), or on as many as
// the intended starts ask for (open loop).
//
//go:nosplit
//go:norace
//go:nocheckptr
func (c *control) roundRobin() {
	epoll, errno := native.EpollCreate()
	if errno != 0 {
		c.fail(stepPoll, errno)
		return
	}
	m := many{epoll: epoll}
	for i := range c.conns {
		k := c.at(i)
		k.active = false
		event := unix.EpollEvent{Events: unix.EPOLLIN, Fd: i}
		if errno := native.EpollAdd(epoll, k.fd, &event); errno != 0 {
			c.fail(stepPoll, errno)
			native.Close(epoll)
			return
		}
	}
	if c.order.warmup <= 0 || c.roundRobinFor(&m, c.order.warmup, 0) {
		c.beginWindow()
		m.measured = true
		c.roundRobinFor(&m, c.order.duration, c.order.transactions)
	}
	native.Close(epoll)
}

// at is the state of a connection. The mask spares the bounds check, whose failure could not be reported from a loop.
//
//go:nosplit
//go:norace
func (c *control) at(i int32) *connection { return &c.connection[uint32(i)%MaxConnections] }

//go:nosplit
//go:norace
//go:nocheckptr
func (c *control) roundRobinFor(m *many, span, limit int64) bool {
	m.begin, m.last, m.limit, m.issued, m.open = c.clock.Ticks(), 1<<63-1, limit, 0, 0
	if m.measured {
		m.begin = c.outcome.start
	}
	if span > 0 {
		m.last = m.begin + span
	}
	for {
		now := c.clock.Ticks()
		due, ok := c.issue(m, now)
		if !ok {
			return false
		}
		if c.stopped() {
			return c.fail(stepStopped, 0)
		}
		if m.open == 0 && due < 0 {
			break
		}
		if !c.settle(m, now, due) {
			return false
		}
	}
	if m.measured {
		now := c.clock.Ticks()
		if c.order.gap > 0 && span > 0 {
			now = max(now, m.last) // the rest of the window was intended to be silent
		}
		c.endWindow(now)
	}
	return true
}

// issue starts all transactions that are due and have a free connection. It returns when the next one is due: -1 when none
// will be, and no time limit (the largest time) when it waits for a connection.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (c *control) issue(m *many, now int64) (due int64, ok bool) {
	for {
		start := now
		if c.order.gap > 0 {
			start = m.begin + m.issued*c.order.gap>>16
		}
		if start+c.roundingOf(c.order.gap) >= m.last || m.limit > 0 && m.issued >= m.limit {
			return -1, true
		}
		if start > now {
			return start, true
		}
		if m.open == c.conns {
			return 1<<63 - 1, true
		}
		k := c.at(m.next)
		for k.active {
			m.next++
			if m.next >= c.conns {
				m.next = 0
			}
			k = c.at(m.next)
		}
		m.next++
		if m.next >= c.conns {
			m.next = 0
		}
		k.active, k.retry, k.sent, k.got, k.start = true, false, 0, 0, start
		k.number = c.transaction
		c.transaction++
		m.issued++
		m.open++
		if !c.advance(m, k) {
			return 0, false
		}
		now = c.clock.Ticks()
	}
}

// advance sends what a connection's request still lacks. A request that does not fit into the socket's buffer goes on when
// there is room.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (c *control) advance(m *many, k *connection) bool {
	if c.kind == DatagramRR {
		return c.sendDatagram(k)
	}
	for k.sent < c.message {
		n, errno := native.Send(k.fd, unsafe.Add(c.out, k.sent), c.message-k.sent, unix.MSG_DONTWAIT)
		if errno == unix.EINTR {
			continue
		}
		if errno == unix.EAGAIN {
			return c.watch(m, k, unix.EPOLLIN|unix.EPOLLOUT)
		}
		if errno != 0 {
			return c.fail(stepSend, errno)
		}
		k.sent += n
	}
	if k.retry {
		return c.watch(m, k, unix.EPOLLIN)
	}
	return true
}

// sendDatagram sends a connection's request, or sends it again.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (c *control) sendDatagram(k *connection) bool {
	out := (*header)(c.out)
	out.burst, out.number = c.order.number, k.number
	c.outcome.counters.sent++
	k.tried = c.clock.Ticks()
	_, errno := native.Send(k.fd, c.out, c.message, unix.MSG_DONTWAIT)
	if errno != 0 && !lossy(errno) {
		return c.fail(stepSend, errno)
	}
	return true
}

// watch sets the events that a connection waits for; retry says that it waits for room to send.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (c *control) watch(m *many, k *connection, events uint32) bool {
	k.retry = events&unix.EPOLLOUT != 0
	offset := uintptr(unsafe.Pointer(k)) - uintptr(unsafe.Pointer(c.connection))
	event := unix.EpollEvent{Events: events, Fd: int32(offset / unsafe.Sizeof(connection{}))}
	if errno := native.EpollChange(m.epoll, k.fd, &event); errno != 0 {
		return c.fail(stepPoll, errno)
	}
	return true
}

// settle waits for responses, at the longest until the next transaction is due, and takes those that have come.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (c *control) settle(m *many, now, due int64) bool {
	const longest = 50_000_000 // ns, so that the Go side may end it
	wait := int64(longest)
	if due > now {
		wait = min(wait, c.clock.Nanoseconds(due-now))
	}
	if c.kind == DatagramRR {
		wait = min(wait, c.clock.Nanoseconds(c.lossTicks))
	}
	n, errno := native.EpollWait(m.epoll, unsafe.Pointer(c.events), eventRoom, wait)
	if errno != 0 && errno != unix.EINTR {
		return c.fail(stepPoll, errno)
	}
	for i := range n {
		event := &c.events[uint(i)%eventRoom]
		k := c.at(event.Fd)
		if k.active && k.retry && event.Events&unix.EPOLLOUT != 0 && !c.advance(m, k) {
			return false
		}
		if event.Events&^unix.EPOLLOUT != 0 && !c.take(m, k) {
			return false
		}
	}
	if c.kind == DatagramRR {
		return c.repeatLost()
	}
	return true
}

// take receives what has come on a connection, and ends its transaction when the response is whole.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (c *control) take(m *many, k *connection) bool {
	n, errno := native.Receive(k.fd, unsafe.Add(c.in, k.got), c.message-k.got, unix.MSG_DONTWAIT)
	if errno == unix.EAGAIN || errno == unix.EINTR || c.kind == DatagramRR && lossy(errno) {
		return true
	}
	if errno != 0 {
		return c.fail(stepReceive, errno)
	}
	if c.kind == DatagramRR {
		in := (*header)(c.in)
		if n != c.message || in.burst != c.order.number || !k.active || in.number != k.number {
			if n == c.message && in.burst == c.order.number && c.outcome.counters.lost > 0 {
				c.outcome.counters.lost-- // late, not lost
			}
			return true
		}
		k.got = n
	} else {
		if n == 0 {
			return c.fail(stepPeerClosed, 0)
		}
		k.got += n
	}
	if k.got < c.message {
		return true
	}
	end := c.clock.Ticks()
	k.active = false
	m.open--
	c.outcome.counters.transactions++
	c.outcome.counters.bytes += 2 * int64(c.message)
	if m.measured {
		c.latency.Record(end - k.start)
		c.tick(end)
	}
	return true
}

// repeatLost sends again the datagrams whose response has not come in time.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (c *control) repeatLost() bool {
	now := c.clock.Ticks()
	for i := range c.conns {
		k := c.at(i)
		if k.active && now-k.tried > c.lossTicks {
			c.outcome.counters.lost++
			if !c.sendDatagram(k) {
				return false
			}
		}
	}
	return true
}
