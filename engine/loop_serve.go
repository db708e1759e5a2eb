package engine

import (
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"netdelta/internal/native"
)

// runServer is the thread of a server. Between requests it is blocked in the kernel.
//
//go:nosplit
//go:norace
//go:nocheckptr
func runServer(c *control) {
	native.EnterSyscall()
	atomic.StoreInt32(&c.thread, native.ThreadID())
	before := native.ThreadCPU() // the runtime may have used the thread
	atomic.StoreInt64(&c.spent, -before)
	switch {
	case c.kind == DatagramRR && c.conns > 1:
		c.serveDatagrams()
	case c.kind == DatagramRR:
		c.servePeer()
	case c.kind == DatagramOut:
		c.serveFlood()
	case c.kind == ConnectRR:
		c.serveConnections()
	case c.kind == StreamOut:
		c.serveStream()
	case c.conns > 1:
		c.serveMany()
	default:
		c.serveOne()
	}
	atomic.StoreInt64(&c.spent, native.ThreadCPU()-before)
	native.ExitSyscall()
}

// serveOne answers the requests of one TCP connection.
//
//go:nosplit
//go:norace
func (c *control) serveOne() {
	e := &c.exchange
	fd := int32(e.FD)
	for {
		native.Answer(e)
		if e.Got != e.Size {
			if e.Got == 0 || !c.again(e.Got, stepReceive) || !c.receiveRest(fd, uintptr(max(e.Got, 0))) || !c.sendAll(fd) {
				return
			}
		} else if !c.again(e.Sent, stepSend) || !c.sendRest(fd, uintptr(max(e.Sent, 0))) {
			return
		}
		e.Served++
	}
}

// farewell is the size of the datagram by which a client takes leave: no request is so small.
const farewell = 1

// servePeer answers the datagrams of one client, on a socket that is connected to it: that saves looking up the way back
// for every response, as any server saves it that knows its clients.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (c *control) servePeer() {
	e := &c.exchange
	e.Out = e.In
	fd := int32(e.FD)
	for !c.stopped() {
		native.Answer(e)
		if e.Got == farewell || -e.Got == int64(unix.ECONNREFUSED) {
			return // the client is gone
		}
		switch {
		case e.Got == e.Size: // what can't be sent counts as lost at the client
			if native.Errno(-e.Sent) == unix.ECONNREFUSED {
				return
			}
		case e.Got > 0:
			native.Send(fd, c.in, uintptr(e.Got), 0)
			e.Served++
		case e.Got < 0 && !lossy(native.Errno(-e.Got)):
			c.fail(stepReceive, native.Errno(-e.Got))
			return
		}
	}
}

// knows says whether a datagram comes from the address that the server's client has. It is the one of the first datagram: who
// sends to a server later, from elsewhere or in another's name, gets nothing out of it.
//
//go:nosplit
//go:norace
func (c *control) knows(from *address) bool {
	if c.shared {
		return true
	}
	if c.client.length == 0 {
		c.client = *from
		return true
	}
	// Behind the family, the port and, of IPv6, the flow stands the address.
	first, end := 4, 8
	if from.length == unix.SizeofSockaddrInet6 {
		first, end = 8, 24
	}
	for i := first; i < end && i < len(from.raw); i++ {
		if from.raw[i] != c.client.raw[i] {
			return false
		}
	}
	return true
}

// serveDatagrams answers each datagram of its client with one of its size.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (c *control) serveDatagrams() {
	var from address
	for !c.stopped() {
		from.length = uint32(len(from.raw))
		n, errno := native.ReceiveFrom(c.listener, c.in, c.message, unsafe.Pointer(&from.raw), &from.length)
		if errno != 0 {
			// A refusal tells of a client that is gone; others may come.
			if lossy(errno) {
				continue
			}
			c.fail(stepReceive, errno)
			return
		}
		if n != c.message || !c.knows(&from) {
			continue // another's, or the end
		}
		// What can't be sent counts as lost at the client.
		native.SendTo(c.listener, c.in, n, unsafe.Pointer(&from.raw), uintptr(from.length))
		c.served.transactions++
		c.served.bytes += 2 * int64(n)
	}
}

// serveConnections accepts one connection after the other, answers its request and closes it.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (c *control) serveConnections() {
	for !c.stopped() {
		fd, errno := native.Accept(c.listener, unix.SOCK_CLOEXEC)
		if errno != 0 {
			// A connection may have gone before it was accepted.
			if errno == unix.EINTR || errno == unix.ECONNABORTED || errno == unix.EPROTO {
				continue
			}
			c.fail(stepConnect, errno)
			return
		}
		// A client that hangs must not hold up the next one for ever.
		native.SetOption(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, unsafe.Pointer(&c.options.timeout), unsafe.Sizeof(c.options.timeout))
		if c.receiveInTime(fd) && c.sendAll(fd) {
			c.served.transactions++
			c.served.bytes += 2 * int64(c.message)
		}
		native.Close(fd)
	}
}

// receiveInTime receives one message, or gives up when nothing comes within the socket's timeout.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (c *control) receiveInTime(fd int32) bool {
	for done := uintptr(0); done < c.message; {
		n, errno := native.Receive(fd, unsafe.Add(c.in, done), c.message-done, 0)
		if errno == unix.EINTR && !c.stopped() {
			continue
		}
		if errno != 0 || n == 0 {
			return false
		}
		done += n
	}
	return true
}

// serveStream reads one TCP stream, in pieces of any size, and answers the last message of each burst.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (c *control) serveStream() {
	fd := c.connection[0].fd
	head := uintptr(0) // bytes until the next message begins
	var pending uint64 // an end was seen: the report goes out when its message is whole
	for {
		n, errno := native.Receive(fd, c.in, StreamBuffer, 0)
		if errno == unix.EINTR && !c.stopped() {
			continue
		}
		if errno != 0 || n == 0 {
			return
		}
		c.served.bytes += int64(n)
		for head < n {
			if pending > 0 {
				pending = 0
				if !c.reportStream(fd) {
					return
				}
			}
			c.served.transactions++
			if *(*byte)(unsafe.Add(c.in, head)) == markLast {
				pending = 1
			}
			head += c.message
		}
		head -= n
		if head == 0 && pending > 0 {
			pending = 0
			if !c.reportStream(fd) {
				return
			}
		}
	}
}

//go:nosplit
//go:norace
//go:nocheckptr
func (c *control) reportStream(fd int32) bool {
	report := streamReport{bytes: uint64(c.served.bytes)}
	n, errno := native.Send(fd, unsafe.Pointer(&report), unsafe.Sizeof(report), 0)
	return errno == 0 && n == unsafe.Sizeof(report)
}

// StreamBuffer is how much the receiver of a TCP stream reads at a time, at most.
const StreamBuffer = 128 << 10

// serveMany answers requests on many connections from one thread.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (c *control) serveMany() {
	epoll, errno := native.EpollCreate()
	if errno != 0 {
		c.fail(stepPoll, errno)
		return
	}
	c.many.epoll = epoll
	event := unix.EpollEvent{Events: unix.EPOLLIN, Fd: -1}
	if errno := native.EpollControl(epoll, unix.EPOLL_CTL_ADD, c.listener, &event); errno != 0 {
		c.fail(stepPoll, errno)
	}
	for c.outcome.step == stepNone && !c.stopped() {
		n, errno := native.EpollWait(epoll, unsafe.Pointer(c.events), eventRoom, -1)
		if errno != 0 && errno != unix.EINTR {
			c.fail(stepPoll, errno)
		}
		for i := range n {
			if slot := c.events[uint(i)%eventRoom].Fd; slot < 0 {
				c.admit()
			} else {
				c.answer(c.at(slot))
			}
		}
	}
	for i := range c.conns {
		if k := c.at(i); k.active {
			native.Close(k.fd)
			k.active = false
		}
	}
	native.Close(epoll)
}

// admit accepts a connection and gives it a place; one too many is closed.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (c *control) admit() {
	fd, errno := native.Accept(c.listener, unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
	if errno != 0 {
		return
	}
	for i := range c.conns {
		k := c.at(i)
		if k.active {
			continue
		}
		*k = connection{fd: fd, active: true}
		event := unix.EpollEvent{Events: unix.EPOLLIN, Fd: i}
		if native.EpollControl(c.many.epoll, unix.EPOLL_CTL_ADD, fd, &event) != 0 {
			break
		}
		return
	}
	native.Close(fd)
}

// answer takes what has come on a connection, and sends the response when the request is whole. Requests and responses have
// the same content, so one buffer serves all connections.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (c *control) answer(k *connection) {
	if k.got < c.message {
		n, errno := native.Receive(k.fd, unsafe.Add(c.in, k.got), c.message-k.got, 0)
		if errno == unix.EAGAIN || errno == unix.EINTR {
			return
		}
		if errno != 0 || n == 0 {
			native.Close(k.fd)
			k.active = false
			return
		}
		if k.got += n; k.got < c.message {
			return
		}
		k.sent = 0
	}
	for k.sent < c.message {
		n, errno := native.Send(k.fd, unsafe.Add(c.out, k.sent), c.message-k.sent, 0)
		if errno == unix.EINTR {
			continue
		}
		if errno == unix.EAGAIN {
			c.watch(k, unix.EPOLL_CTL_MOD, unix.EPOLLOUT)
			return
		}
		if errno != 0 {
			native.Close(k.fd)
			k.active = false
			return
		}
		k.sent += n
	}
	if k.retry {
		c.watch(k, unix.EPOLL_CTL_MOD, unix.EPOLLIN)
	}
	k.got = 0
	c.served.transactions++
	c.served.bytes += 2 * int64(c.message)
}
