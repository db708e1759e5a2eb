package udptun

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"netdelta/internal/native"
)

// carry moves packets until standard input ends.
//
//go:nosplit
//go:norace
//go:nocheckptr
func carry(c *carrier) {
	native.EnterSyscall()
	c.loop()
	native.ExitSyscall()
}

//go:nosplit
//go:norace
//go:nocheckptr
func (c *carrier) loop() {
	for {
		n, errno := native.EpollWait(c.epoll, unsafe.Pointer(&c.events), uintptr(len(c.events)), -1)
		if errno != 0 && errno != unix.EINTR {
			c.failed = errno
			return
		}
		for i := range n {
			switch c.events[i].Fd {
			case c.tun:
				c.fromDevice()
			case c.socket:
				c.fromSocket()
			default:
				return
			}
		}
	}
}

// fromDevice sends what the node has routed into the tunnel, at most a batch. What no peer has is dropped.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (c *carrier) fromDevice() {
	count := 0
	for count < batch {
		m := &c.out[count]
		n, _, errno := syscall.RawSyscall6(unix.SYS_READ, uintptr(c.tun), uintptr(unsafe.Pointer(m.header.Iov.Base)), c.room, 0, 0, 0)
		if errno == unix.EINTR {
			continue
		}
		if errno != 0 {
			break // all packets are read
		}
		to := c.find(unsafe.Pointer(m.header.Iov.Base), n)
		if to == nil || n >= c.room {
			continue
		}
		m.header.Iov.Len = uint64(n)
		m.header.Name, m.header.Namelen = (*byte)(unsafe.Pointer(&to.address)), to.addressSize
		count++
	}
	c.send(count)
}

// send hands datagrams to the kernel. One that it refuses is dropped, as by any link.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (c *carrier) send(count int) {
	for sent := 0; sent < count; {
		n, _, errno := syscall.RawSyscall6(unix.SYS_SENDMMSG, uintptr(c.socket), uintptr(unsafe.Pointer(&c.out[sent])), uintptr(count-sent), 0, 0, 0)
		switch {
		case errno == unix.EINTR:
		case errno != 0 || n == 0:
			sent++
		default:
			sent += int(n)
		}
	}
}

// fromSocket hands what has come from other nodes to the device, at most a batch.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (c *carrier) fromSocket() {
	n, _, errno := syscall.RawSyscall6(unix.SYS_RECVMMSG, uintptr(c.socket), uintptr(unsafe.Pointer(c.in)), batch, unix.MSG_DONTWAIT, 0, 0)
	if errno != 0 {
		return // an earlier datagram was refused by its receiver, or there is none
	}
	for i := range int(n) {
		m := &c.in[i]
		if m.header.Flags&unix.MSG_TRUNC != 0 {
			continue
		}
		_, _, _ = syscall.RawSyscall6(unix.SYS_WRITE, uintptr(c.tun), uintptr(unsafe.Pointer(m.header.Iov.Base)), uintptr(m.length), 0, 0, 0)
	}
}

// target is the peer of a number.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (c *carrier) target(i uintptr) *target {
	return (*target)(unsafe.Add(c.targets, i*unsafe.Sizeof(target{})))
}

// find looks up the peer that has a packet's destination, nil for none and for what is no packet.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (c *carrier) find(packet unsafe.Pointer, size uintptr) *target {
	const at4, size4, at6, size6 = 16, 20, 24, 40
	if size < size4 {
		return nil
	}
	version := *(*byte)(packet) >> 4
	var high, low uint64
	switch {
	case version == 4:
		low = bigEndian(packet, at4, 4)
	case version == 6 && size >= size6:
		high, low = bigEndian(packet, at6, 8), bigEndian(packet, at6+8, 8)
	default:
		return nil
	}
	for i := range c.count {
		t := c.target(i)
		if t.version == version && (high^t.prefix[0])&t.mask[0] == 0 && (low^t.prefix[1])&t.mask[1] == 0 {
			return t
		}
	}
	return nil
}

// bigEndian reads a number of so many bytes.
//
//go:nosplit
//go:norace
//go:nocheckptr
func bigEndian(p unsafe.Pointer, at, size uintptr) uint64 {
	var v uint64
	for i := range size {
		v = v<<8 | uint64(*(*byte)(unsafe.Add(p, at+i)))
	}
	return v
}
