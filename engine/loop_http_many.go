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

// watchWeb changes what a connection's socket is watched for.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (c *control) watchWeb(k *connection, events uint32) progress {
	if !c.watch(k, unix.EPOLL_CTL_MOD, events) {
		return progressBroken
	}
	return progressWaits
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
	m := &c.many
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
	if !c.openSocket(k, unix.SOCK_NONBLOCK) {
		return progressFailed
	}
	errno := native.Connect(k.fd, unsafe.Pointer(&c.remote.raw), uintptr(c.remote.length))
	if errno != 0 && errno != unix.EINPROGRESS {
		c.fail(stepConnect, errno)
		return progressFailed
	}
	k.phase = phaseConnecting
	if !c.watch(k, unix.EPOLL_CTL_ADD, unix.EPOLLOUT) {
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
