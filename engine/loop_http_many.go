package engine

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"netdelta/internal/native"
)

// phase is what a connection of HTTP waits for, where there are several.
type phase uint8

const (
	phaseConnecting phase = iota + 1
	phaseSending
	phaseReceiving
	phaseEnding // the response is whole, and the server is to close the connection
)

// progress is how far a connection's transaction has come.
type progress uint8

const (
	progressWaits progress = iota // for the network
	progressWhole
	progressFailed
	progressBroken // and the burst with it
)

// webMany is a burst of HTTP over several connections. It lies in the arena, since the stack of a loop is short.
type webMany struct {
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

// webRound runs a burst of HTTP over several connections, with a request under way on each (closed loop), or on as many as the
// intended starts ask for (open loop).
//
//go:nosplit
//go:norace
//go:nocheckptr
func (c *control) webRound() {
	m := &c.web.many
	*m = webMany{}
	epoll, errno := native.EpollCreate()
	if errno != 0 {
		c.fail(stepPoll, errno)
		return
	}
	m.epoll = epoll
	ok := true
	for i := range c.conns {
		k := c.at(i)
		if k.active = false; k.fd >= 0 && ok {
			ok = c.register(k, unix.EPOLLIN)
		}
	}
	if ok && c.order.warmup > 0 {
		ok = c.webRoundFor(c.order.warmup, 0)
	}
	if ok {
		c.beginWindow()
		m.measured = true
		c.webRoundFor(c.order.duration, c.order.transactions)
	}
	native.Close(epoll)
}

// register watches a connection's socket.
//
//go:nosplit
//go:norace
//go:nocheckptr
//go:noinline
func (c *control) register(k *connection, events uint32) bool {
	k.retry = events&unix.EPOLLOUT != 0
	event := unix.EpollEvent{Events: events, Fd: int32(c.numberOf(k))}
	if errno := native.EpollAdd(c.web.many.epoll, k.fd, &event); errno != 0 {
		return c.fail(stepPoll, errno)
	}
	return true
}

// watchWeb changes what a connection's socket is watched for.
//
//go:nosplit
//go:norace
//go:nocheckptr
//go:noinline
func (c *control) watchWeb(k *connection, events uint32) progress {
	k.retry = events&unix.EPOLLOUT != 0
	event := unix.EpollEvent{Events: events, Fd: int32(c.numberOf(k))}
	if errno := native.EpollChange(c.web.many.epoll, k.fd, &event); errno != 0 {
		c.fail(stepPoll, errno)
		return progressBroken
	}
	return progressWaits
}

// numberOf is the number of a connection.
//
//go:nosplit
//go:norace
func (c *control) numberOf(k *connection) uintptr {
	return (uintptr(unsafe.Pointer(k)) - uintptr(unsafe.Pointer(c.connection))) / unsafe.Sizeof(connection{})
}

//go:nosplit
//go:norace
//go:nocheckptr
func (c *control) webRoundFor(span, limit int64) bool {
	m := &c.web.many
	m.begin, m.last, m.limit, m.issued = c.clock.Ticks(), 1<<63-1, limit, 0
	if m.measured {
		m.begin = c.outcome.start
	}
	if span > 0 {
		m.last = m.begin + span
	}
	for {
		k := c.nextWeb()
		if c.stopped() {
			return c.fail(stepStopped, 0)
		}
		if k != nil {
			if !c.settleWeb(k, c.startWeb(k)) {
				return false
			}
			continue
		}
		if m.open == 0 && m.due < 0 {
			break
		}
		n := c.pollWeb()
		if n < 0 {
			return false
		}
		for i := range n {
			k := c.at(c.events[uint(i)%eventRoom].Fd)
			if !c.settleWeb(k, c.wakeWeb(k)) {
				return false
			}
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

// nextWeb is a free connection for a transaction that is due; nil if no connection is free or no transaction is due, and then due says when there is one.
//
//go:nosplit
//go:norace
//go:noinline
func (c *control) nextWeb() *connection {
	m := &c.web.many
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

// pollWeb waits for something to happen on a connection, at the longest until the next transaction is due. It returns on how many
// it did; -1 if that can't be had.
//
//go:nosplit
//go:norace
//go:nocheckptr
//go:noinline
func (c *control) pollWeb() int {
	const longest = 50_000_000 // ns, so that the Go side may end it
	wait := int64(longest)
	if m := &c.web.many; m.due > m.now {
		wait = min(wait, c.clock.Nanoseconds(m.due-m.now))
	}
	n, errno := native.EpollWait(c.web.many.epoll, unsafe.Pointer(c.events), eventRoom, wait)
	if errno != 0 && errno != unix.EINTR {
		c.fail(stepPoll, errno)
		return -1
	}
	return n
}

// settleWeb ends a transaction that is whole or has failed. It returns false when the burst is to end with it.
//
//go:nosplit
//go:norace
func (c *control) settleWeb(k *connection, p progress) bool {
	switch p {
	case progressWaits:
		return true
	case progressBroken:
		return false
	}
	m := &c.web.many
	k.active = false
	m.open--
	if p == progressFailed {
		return c.failure(k)
	}
	c.web.failures = 0
	c.outcome.counters.transactions++
	c.outcome.counters.bytes += int64(c.web.request + k.size)
	if m.measured {
		c.latency.Record(k.end - k.start)
		c.tick(k.end)
	}
	return true
}

// startWeb starts a transaction on a connection.
//
//go:nosplit
//go:norace
//go:nocheckptr
//go:noinline
func (c *control) startWeb(k *connection) progress {
	if k.fd >= 0 {
		k.phase = phaseSending
		return c.sendWeb(k)
	}
	if !c.openWeb(k, unix.SOCK_NONBLOCK) {
		return progressFailed
	}
	errno := native.Connect(k.fd, unsafe.Pointer(&c.remote.raw), uintptr(c.remote.length))
	if errno != 0 && errno != unix.EINPROGRESS {
		c.fail(stepConnect, errno)
		return progressFailed
	}
	k.phase = phaseConnecting
	if !c.register(k, unix.EPOLLOUT) {
		return progressBroken
	}
	return progressWaits
}

// sendWeb sends what a connection's request still lacks.
//
//go:nosplit
//go:norace
//go:nocheckptr
//go:noinline
func (c *control) sendWeb(k *connection) progress {
	for k.sent < c.web.request {
		n, errno := native.Send(k.fd, unsafe.Add(c.out, k.sent), c.web.request-k.sent, unix.MSG_DONTWAIT)
		if errno == unix.EINTR {
			continue
		}
		if errno == unix.EAGAIN {
			return c.watchWeb(k, unix.EPOLLIN|unix.EPOLLOUT)
		}
		if errno != 0 {
			c.fail(stepSend, errno)
			return progressFailed
		}
		k.sent += n
		c.outcome.moved += int64(n)
	}
	k.phase = phaseReceiving
	if k.retry {
		return c.watchWeb(k, unix.EPOLLIN)
	}
	return progressWaits
}

// wakeWeb goes on with a connection on which something has happened.
//
//go:nosplit
//go:norace
//go:nocheckptr
//go:noinline
func (c *control) wakeWeb(k *connection) progress {
	if !k.active {
		c.hangUp(k) // closed by the server while nothing was asked of it: the next request opens another
		return progressWaits
	}
	if k.phase == phaseConnecting {
		if errno := native.Pending(k.fd); errno != 0 {
			c.fail(stepConnect, errno)
			return progressFailed
		}
		k.phase = phaseSending
	}
	if k.phase == phaseSending {
		return c.sendWeb(k)
	}
	n, errno := native.Receive(k.fd, c.in, c.web.room, unix.MSG_DONTWAIT)
	if errno == unix.EAGAIN || errno == unix.EINTR {
		return progressWaits
	}
	if k.phase == phaseEnding {
		if errno == 0 && n > 0 {
			c.fail(stepEnd, unix.EPROTO)
			return progressFailed
		}
		c.hangUp(k)
		return progressWhole
	}
	if errno != 0 {
		c.fail(stepReceive, errno)
		return progressFailed
	}
	if !c.took(k, n) {
		return progressFailed
	}
	if k.got != k.size {
		return progressWaits
	}
	k.end = c.clock.Ticks()
	if k.closes {
		k.phase = phaseEnding
		return progressWaits
	}
	if c.web.reconnect {
		c.hangUp(k)
	}
	return progressWhole
}
