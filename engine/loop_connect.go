package engine

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"netdelta/internal/native"
)

// exchangeOnNewConnection connects, sends a request, receives the response and the end of the connection, and closes. The
// server closes first, so that it is the server who keeps the connection in TIME_WAIT: the client's port is free again at
// once, and the server lets a new connection take over one in TIME_WAIT, as its sequence numbers and time stamps have moved on.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (c *control) exchangeOnNewConnection() bool {
	k := &c.connection[0]
	k.fd = -1
	ok := c.openSocket(k, 0) && c.connectSocket(k) && c.sendAll(k.fd) && c.receiveAll(k.fd) && c.receiveEnd(k.fd)
	if k.fd >= 0 {
		native.Close(k.fd)
	}
	return ok
}

// openSocket opens a connection's socket, with the given flags.
//
//go:nosplit
//go:norace
//go:noinline
func (c *control) openSocket(k *connection, flags uintptr) bool {
	fd, errno := native.Socket(c.family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|flags, 0)
	if errno != 0 {
		return c.fail(stepSocket, errno)
	}
	k.fd, k.own = fd, true
	if errno := c.setOptions(fd); errno != 0 {
		return c.fail(stepSocket, errno)
	}
	if c.options.bind {
		if errno := c.bindNext(fd); errno != 0 {
			return c.fail(stepBind, errno)
		}
	}
	return true
}

// connectSocket connects a connection's socket, and waits until it is.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (c *control) connectSocket(k *connection) bool {
	for {
		errno := native.Connect(k.fd, unsafe.Pointer(&c.remote.raw), uintptr(c.remote.length))
		if errno == 0 || errno == unix.EISCONN {
			return true
		}
		// The socket's timeout has passed: see whether the burst was given up, then go on waiting.
		again := errno == unix.EINPROGRESS || errno == unix.EALREADY || errno == unix.EINTR || errno == unix.EAGAIN
		if !again || c.stopped() {
			return c.fail(stepConnect, errno)
		}
	}
}

//go:nosplit
//go:norace
//go:nocheckptr
func (c *control) setOptions(fd int32) native.Errno {
	o := &c.options
	for _, name := range [...]uintptr{unix.SO_RCVTIMEO, unix.SO_SNDTIMEO} {
		if errno := native.SetOption(fd, unix.SOL_SOCKET, name, unsafe.Pointer(&o.timeout), unsafe.Sizeof(o.timeout)); errno != 0 {
			return errno
		}
	}
	if o.noDelay {
		if errno := native.SetOption(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, unsafe.Pointer(&o.one), 4); errno != 0 {
			return errno
		}
	}
	if o.congestionLen > 0 {
		if errno := native.SetOption(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, unsafe.Pointer(&o.congestion), o.congestionLen); errno != 0 {
			return errno
		}
	}
	if o.busyPoll > 0 {
		return native.SetOption(fd, unix.SOL_SOCKET, unix.SO_BUSY_POLL, unsafe.Pointer(&o.busyPoll), 4)
	}
	return 0
}

// bindNext binds to the next source port in turn. A port that is still in use is passed over.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (c *control) bindNext(fd int32) native.Errno {
	if errno := native.SetOption(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, unsafe.Pointer(&c.options.one), 4); errno != 0 {
		return errno
	}
	var errno native.Errno
	for range c.ports {
		a := c.local
		port := uint32(a.raw[2])<<8 | uint32(a.raw[3])
		port += c.port
		a.raw[2], a.raw[3] = byte(port>>8), byte(port)
		if c.port++; c.port == c.ports {
			c.port = 0
		}
		if errno = native.Bind(fd, unsafe.Pointer(&a.raw), uintptr(a.length)); errno != unix.EADDRINUSE {
			break
		}
	}
	return errno
}

// receiveEnd waits until the server has closed the connection.
//
//go:nosplit
//go:norace
func (c *control) receiveEnd(fd int32) bool {
	for {
		n, errno := native.Receive(fd, c.in, c.message, 0)
		switch {
		case errno == 0 && n == 0:
			return true
		case errno == 0:
			return c.fail(stepEnd, unix.EPROTO)
		case errno != unix.EINTR && errno != unix.EAGAIN || c.stopped():
			return c.fail(stepEnd, errno)
		}
	}
}
