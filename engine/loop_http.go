package engine

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"netdelta/internal/native"
)

// headRoom is the longest head of a response that may come in pieces.
const headRoom = 2048

// web is what a loop knows of the HTTP that it speaks.
type web struct {
	request uintptr // bytes of a request, which lies in out
	room    uintptr // of in
	body    uintptr // bytes of the file that is asked for

	reconnect bool // for each request
	failed    bool // the transaction that has just ended
	closes    bool // the last good response ended its connection
	digits    int32
	length    [20]byte // body in decimal digits, so many of them
	// head is the length of the last good response's head, and lengthAt where in it the digits stood: one that looks the same
	// there is as good, and need not be parsed.
	head, lengthAt uintptr
	failures       int64 // in a row
	patience       int64 // how many of them end a burst
	heads          *[MaxConnections][headRoom]byte
}

// get runs one transaction. One that fails is counted among the errors, its connection is given up, and the burst goes on, unless
// nothing but failures comes.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (c *control) get() bool {
	k := &c.connection[0]
	c.exchange.Start = c.clock.Ticks()
	// Opening a connection takes more of the stack than one more function would leave.
	ok := k.fd >= 0 || c.openSocket(k, 0) && c.connectSocket(k)
	if c.web.failed = !ok || !c.fetch(k); c.web.failed {
		c.exchange.End = c.clock.Ticks()
		return c.failure(k)
	}
	c.web.failures = 0
	c.outcome.counters.bytes += int64(c.web.request + k.size)
	return true
}

// failure counts a transaction that has failed. It returns false when the burst is to end with it.
//
//go:nosplit
//go:norace
func (c *control) failure(k *connection) bool {
	c.hangUp(k)
	o := &c.outcome
	o.counters.errors++
	c.web.failures++
	o.failures = c.web.failures
	if c.stopped() || c.web.failures >= c.web.patience {
		return false
	}
	o.failed, o.failedErrno = o.step, o.errno
	o.step, o.errno = stepNone, 0
	return true
}

// fetch sends a request and receives the response.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (c *control) fetch(k *connection) bool {
	for k.sent = 0; k.sent < c.web.request; {
		n, errno := native.Send(k.fd, unsafe.Add(c.out, k.sent), c.web.request-k.sent, 0)
		if errno != 0 {
			if !c.again(-int64(errno), stepSend) {
				return false
			}
			n = 0
		}
		k.sent += n
		c.outcome.moved += int64(n)
	}
	k.got, k.size = 0, 0
	for {
		n, errno := native.Receive(k.fd, c.in, c.web.room, 0)
		if errno != 0 {
			if !c.again(-int64(errno), stepReceive) {
				return false
			}
			continue
		}
		if !c.took(k, n) {
			return false
		}
		if k.got == k.size {
			break
		}
	}
	c.exchange.End = c.clock.Ticks()
	if k.closes {
		return c.awaitEnd(k)
	}
	if c.web.reconnect {
		c.hangUp(k)
	}
	return true
}

// awaitEnd waits until the server has closed the connection, as it said it would: so that the server keeps it in TIME_WAIT and
// the client's port is free again.
//
//go:nosplit
//go:norace
func (c *control) awaitEnd(k *connection) bool {
	for {
		n, errno := native.Receive(k.fd, c.in, 1, 0)
		if errno == unix.EINTR || errno == unix.EAGAIN {
			if c.stopped() {
				return c.fail(stepEnd, errno)
			}
			continue
		}
		if n > 0 && errno == 0 {
			return c.fail(stepEnd, unix.EPROTO)
		}
		c.hangUp(k)
		return true
	}
}

// hangUp gives a connection up. What the Go side has a handle on too, it closes.
//
//go:nosplit
//go:norace
//go:noinline
func (c *control) hangUp(k *connection) {
	if k.fd >= 0 {
		native.Shutdown(k.fd)
		if k.own {
			native.Close(k.fd)
		}
	}
	k.fd = -1
}

// took takes in the n bytes at in, of a response. They are all of it when got is size. No bytes are the end of the connection.
//
//go:nosplit
//go:norace
//go:noinline
func (c *control) took(k *connection, n uintptr) bool {
	if n == 0 {
		if k.got > 0 {
			return c.fail(stepShort, 0)
		}
		return c.fail(stepPeerClosed, 0)
	}
	c.outcome.moved += int64(n)
	k.got += n
	if k.size == 0 {
		if c.familiar(n) && k.got == n {
			k.size, k.closes = c.web.head+c.web.body, c.web.closes
		} else if !c.readHead(k, n) {
			return false
		}
	}
	if k.size > 0 && k.got > k.size {
		return c.fail(stepLength, 0)
	}
	return true
}

// familiar says whether the n bytes at in begin with the head of a good response that looks like the last one.
//
//go:nosplit
//go:norace
func (c *control) familiar(n uintptr) bool {
	w := &c.web
	if w.head == 0 || n < w.head || n < 16 {
		return false
	}
	in := c.in
	if at(in, 9) != '2' || at(in, 10) != '0' || at(in, 11) != '0' ||
		at(in, w.head-4) != '\r' || at(in, w.head-3) != '\n' || at(in, w.head-2) != '\r' || at(in, w.head-1) != '\n' {
		return false
	}
	for i := range uintptr(w.digits) {
		if at(in, w.lengthAt+i) != w.length[i%20] {
			return false
		}
	}
	return at(in, w.lengthAt+uintptr(w.digits)) == '\r'
}

//go:nosplit
//go:norace
func at(p unsafe.Pointer, i uintptr) byte { return *(*byte)(unsafe.Add(p, i)) }

// readHead parses the head of a response, of which n bytes have just come. What is not whole yet is kept until it is.
//
//go:nosplit
//go:norace
//go:nocheckptr
//go:noinline
func (c *control) readHead(k *connection, n uintptr) bool {
	p := c.in
	whole := false
	if k.got == n {
		if whole = c.parseHead(k, p, k.got); c.outcome.step != stepNone {
			return false
		}
	}
	if whole {
		return true
	}
	if k.got > headRoom {
		return c.fail(stepHead, 0)
	}
	kept := unsafe.Pointer(&c.web.heads[c.numberOf(k)%MaxConnections])
	for i := range n {
		*(*byte)(unsafe.Add(kept, k.got-n+i)) = at(p, i)
	}
	c.parseHead(k, kept, k.got)
	return c.outcome.step == stepNone
}

// parseHead parses the head of a response in the have bytes at p, and says whether it was there. One that is no good fails.
//
//go:nosplit
//go:norace
//go:noinline
func (c *control) parseHead(k *connection, p unsafe.Pointer, have uintptr) bool {
	end := uintptr(0)
	for i := uintptr(3); i < have; i++ {
		if at(p, i) == '\n' && at(p, i-1) == '\r' && at(p, i-2) == '\n' && at(p, i-3) == '\r' {
			end = i + 1
			break
		}
	}
	if end == 0 {
		return false
	}
	if end < 16 || !begins(p, 0, end, "http/1.") {
		return c.fail(stepHead, 0)
	}
	status := int32(at(p, 9)-'0')*100 + int32(at(p, 10)-'0')*10 + int32(at(p, 11)-'0')
	if c.outcome.status = status; status < 200 || status > 299 {
		return c.fail(stepStatus, 0)
	}
	return c.parseLines(k, p, end)
}

// parseLines reads what the lines of a head say of its body and its connection.
//
//go:nosplit
//go:norace
//go:noinline
func (c *control) parseLines(k *connection, p unsafe.Pointer, end uintptr) bool {
	w := &c.web
	body, lengthAt, closes := uintptr(0), uintptr(0), at(p, 7) == '0'
	for i := uintptr(8); i < end; i++ {
		if at(p, i-1) != '\n' {
			continue
		}
		if begins(p, i, end, "connection: close") {
			closes = true
		}
		if !begins(p, i, end, "content-length: ") {
			continue
		}
		lengthAt = i + 16
		for j := lengthAt; j < end && at(p, j) >= '0' && at(p, j) <= '9'; j++ {
			body = body*10 + uintptr(at(p, j)-'0')
		}
	}
	if lengthAt == 0 {
		return c.fail(stepHead, 0)
	}
	if body != w.body {
		return c.fail(stepLength, 0)
	}
	w.head, w.lengthAt, w.closes = end, lengthAt, closes
	k.size, k.closes = end+body, closes
	return true
}

// begins says whether what stands at i before end begins with a word in small letters, in letters of any size.
//
//go:nosplit
//go:norace
//go:noinline
func begins(p unsafe.Pointer, i, end uintptr, word string) bool {
	if i+uintptr(len(word)) > end {
		return false
	}
	for j := range len(word) {
		if at(p, i+uintptr(j))|0x20 != word[j]|0x20 {
			return false
		}
	}
	return true
}
