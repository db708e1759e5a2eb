package engine

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"netdelta/internal/native"
)

// many is the state of a burst over several connections. It lies in the arena, since the stack of a loop is short.
type many struct {
	epoll    int32
	open     int32 // transactions under way
	next     int32 // connection to look at next for a free one
	measured bool
	begin    int64 // of this part of the burst
	last     int64 // no transaction starts from here on
	limit    int64
	issued   int64
	now      int64
	due      int64 // when the next transaction is: -1 for none any more, the largest time while all connections are busy
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
	c.many = many{epoll: epoll}
	ok := true
	for i := range c.conns {
		k := c.at(i)
		if k.active = false; k.fd >= 0 && ok {
			ok = c.watch(k, unix.EPOLL_CTL_ADD, unix.EPOLLIN)
		}
	}
	if ok && c.order.warmup > 0 {
		ok = c.roundRobinFor(c.order.warmup, 0)
	}
	if ok {
		c.beginWindow()
		c.many.measured = true
		c.roundRobinFor(c.order.duration, c.order.transactions)
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
func (c *control) numberOf(k *connection) uintptr {
	return (uintptr(unsafe.Pointer(k)) - uintptr(unsafe.Pointer(c.connection))) / unsafe.Sizeof(connection{})
}

// watch sets the events that a connection waits for, by an operation of epoll_ctl; retry says that it waits for room to send.
//
//go:nosplit
//go:norace
//go:nocheckptr
//go:noinline
func (c *control) watch(k *connection, operation uintptr, events uint32) bool {
	k.retry = events&unix.EPOLLOUT != 0
	event := unix.EpollEvent{Events: events, Fd: int32(c.numberOf(k))}
	if errno := native.EpollControl(c.many.epoll, operation, k.fd, &event); errno != 0 {
		return c.fail(stepPoll, errno)
	}
	return true
}

// roundRobinFor starts transactions for a span (0: unlimited) or until limit of them are started (0: unlimited), and takes all responses.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (c *control) roundRobinFor(span, limit int64) bool {
	m := &c.many
	m.limit, m.issued = limit, 0
	m.begin, m.last = c.bounds(span, m.measured)
	for {
		k := c.nextFree()
		if c.stopped() {
			return c.fail(stepStopped, 0)
		}
		if k != nil {
			if !c.start(k) {
				return false
			}
			continue
		}
		if m.open == 0 && m.due < 0 {
			break
		}
		n := c.poll()
		if n < 0 {
			return false
		}
		for i := range n {
			if !c.wake(&c.events[uint(i)%eventRoom]) {
				return false
			}
		}
		if c.kind == DatagramRR && !c.repeatLost() {
			return false
		}
	}
	c.endPart(span, m.last, m.measured)
	return true
}

// nextFree is a connection for a transaction that is due. It is nil where none is, or all are busy.
//
//go:nosplit
//go:norace
//go:nocheckptr
//go:noinline
func (c *control) nextFree() *connection {
	m := &c.many
	m.now = c.clock.Ticks()
	start := m.now
	if c.order.gap > 0 {
		start = m.begin + m.issued*c.order.gap>>16
	}
	m.due = start
	switch {
	case start+c.roundingOf(c.order.gap) >= m.last || m.limit > 0 && m.issued >= m.limit:
		m.due = -1
		return nil
	case start > m.now:
		return nil
	case m.open == c.conns:
		m.due = 1<<63 - 1
		return nil
	}
	for {
		k := c.at(m.next)
		if m.next++; m.next >= c.conns {
			m.next = 0
		}
		if !k.active {
			k.active, k.sent, k.got, k.size, k.start = true, 0, 0, 0, start
			m.issued++
			m.open++
			return k
		}
	}
}

// start begins a connection's transaction.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (c *control) start(k *connection) bool {
	if c.kind == HTTPGet {
		return c.settleWeb(k, c.startWeb(k))
	}
	k.number = c.transaction
	c.transaction++
	return c.advance(k)
}

// poll waits for the network, at the longest until the next transaction is due. It returns how many connections have something, -1 for
// an error.
//
//go:nosplit
//go:norace
//go:nocheckptr
//go:noinline
func (c *control) poll() int {
	const longest = 50_000_000 // ns, so that the Go side may end it
	wait := int64(longest)
	if m := &c.many; m.due > m.now {
		wait = min(wait, c.clock.Nanoseconds(m.due-m.now))
	}
	if c.kind == DatagramRR {
		wait = min(wait, c.clock.Nanoseconds(c.lossTicks))
	}
	n, errno := native.EpollWait(c.many.epoll, unsafe.Pointer(c.events), eventRoom, wait)
	if errno != 0 && errno != unix.EINTR {
		c.fail(stepPoll, errno)
		return -1
	}
	return n
}

// wake goes on with the transaction of a connection that has something.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (c *control) wake(event *unix.EpollEvent) bool {
	k := c.at(event.Fd)
	if c.kind == HTTPGet {
		return c.settleWeb(k, c.wakeWeb(k))
	}
	if k.active && k.retry && event.Events&unix.EPOLLOUT != 0 && !c.advance(k) {
		return false
	}
	return event.Events&^unix.EPOLLOUT == 0 || c.take(k)
}

// advance sends what a connection's request still lacks. A request that does not fit into the socket's buffer goes on when
// there is room.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (c *control) advance(k *connection) bool {
	if c.kind == DatagramRR {
		return c.sendDatagram(k)
	}
	for k.sent < c.message {
		n, errno := native.Send(k.fd, unsafe.Add(c.out, k.sent), c.message-k.sent, unix.MSG_DONTWAIT)
		if errno == unix.EINTR {
			continue
		}
		if errno == unix.EAGAIN {
			return c.watch(k, unix.EPOLL_CTL_MOD, unix.EPOLLIN|unix.EPOLLOUT)
		}
		if errno != 0 {
			return c.fail(stepSend, errno)
		}
		k.sent += n
	}
	if k.retry {
		return c.watch(k, unix.EPOLL_CTL_MOD, unix.EPOLLIN)
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

// take receives what has come on a connection, and ends its transaction when the response is whole.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (c *control) take(k *connection) bool {
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
	c.many.open--
	c.outcome.counters.transactions++
	c.outcome.counters.bytes += 2 * int64(c.message)
	if c.many.measured {
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
