package engine

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"netdelta/internal/native"
)

// header is how a datagram of a request-response workload begins: it tells a response from a late one.
type header struct {
	burst  uint32
	number uint32
}

// HeaderSize is the smallest datagram of a request-response workload.
const HeaderSize = unsafe.Sizeof(header{})

// awaitDatagram goes on waiting for a response after a first receive that did not bring it. When none comes in time, the
// datagram is counted as lost and sent again; latency counts from the first. A response that comes after all, after the
// request was repeated, takes that count back: it was late, not lost.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (c *control) awaitDatagram(e *native.Exchange) bool {
	fd := int32(e.FD)
	in, out := (*header)(c.in), (*header)(c.out)
	begin := c.clock.Ticks()
	result, at := e.Got, stepReceive
	if e.Sent != e.Size {
		result, at = min(e.Sent, 0), stepSend
	}
	for {
		errno := native.Errno(0)
		if result < 0 {
			errno = native.Errno(-result)
		}
		switch {
		case errno == 0 && result == e.Size && *in == *out:
			return true
		case c.stopped():
			return c.fail(stepReceive, 0)
		case errno != 0 && !lossy(errno):
			return c.fail(at, errno)
		case errno == 0 && result == e.Size && in.burst == out.burst && c.outcome.counters.lost > 0:
			c.outcome.counters.lost--
		}
		// Whatever came instead must not put off the repetition for ever.
		now := c.clock.Ticks()
		if errno == unix.EAGAIN || now-begin > c.lossTicks {
			begin = now
			c.outcome.counters.lost++
			c.outcome.counters.sent++
			_, errno = native.Send(fd, c.out, c.message, 0)
			if errno != 0 && !lossy(errno) {
				return c.fail(stepSend, errno)
			}
		}
		n, errno := native.Receive(fd, c.in, c.message, 0)
		result, at = int64(n), stepReceive
		if errno != 0 {
			result = -int64(errno)
		}
	}
}

// lossy says whether an error of a datagram socket amounts to a loss on the way: a full queue, a firewall rule on this side
// (EPERM), or the news that an earlier datagram was refused; or to no loss at all: a time that has passed, an interruption.
//
//go:nosplit
//go:norace
func lossy(errno native.Errno) bool {
	switch errno {
	case unix.EAGAIN, unix.EINTR, unix.ENOBUFS, unix.ECONNREFUSED, unix.EPERM, unix.EHOSTUNREACH, unix.ENETUNREACH:
		return true
	}
	return false
}
