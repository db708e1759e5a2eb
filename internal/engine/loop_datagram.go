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

// exchangeDatagrams sends a request and waits for its response. When none comes in time, the datagram is counted as lost
// and sent again; latency counts from the first. A response that comes after all, after the request was repeated, takes
// that count back: it was late, not lost.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (c *control) exchangeDatagrams() bool {
	fd := c.connection[0].fd
	number := c.transaction
	c.transaction++
	out, in := (*header)(c.out), (*header)(c.in)
	out.burst, out.number = c.order.number, number
	for {
		c.outcome.counters.sent++
		_, errno := native.Send(fd, c.out, c.message, 0)
		// A refusal is the answer to an earlier datagram, and a full queue is a loss on the way.
		if errno != 0 && errno != unix.EINTR && errno != unix.EAGAIN && errno != unix.ENOBUFS {
			return c.fail(stepSend, errno)
		}
		deadline := int64(0)
		for {
			n, errno := native.Receive(fd, c.in, c.message, 0)
			if errno == 0 && n == c.message && in.burst == out.burst && in.number == number {
				return true
			}
			if c.stopped() {
				return c.fail(stepReceive, 0)
			}
			if errno == unix.EAGAIN {
				break // the socket's receive timeout
			}
			if errno != 0 && errno != unix.EINTR {
				return c.fail(stepReceive, errno)
			}
			if errno == 0 && n == c.message && in.burst == out.burst && c.outcome.counters.lost > 0 {
				c.outcome.counters.lost--
			}
			// Something else came: wait on, but not for ever.
			now := c.clock.Ticks()
			if deadline == 0 {
				deadline = now + c.lossTicks
			} else if now > deadline {
				break
			}
		}
		c.outcome.counters.lost++
	}
}
