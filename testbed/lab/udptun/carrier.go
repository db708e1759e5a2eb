// Package udptun is the process that carries packets between a TUN device and a UDP socket, as the userspace tunnels of
// container networks do: each packet is the payload of one datagram, sent to the node that has its destination. Many packets
// that are there at once go through the kernel in one call (sendmmsg, recvmmsg); one alone does not wait for others.
package udptun

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"netdelta/internal/native"
)

const (
	// batch is how many packets go through the kernel in one call at most.
	batch = 64
	// maxPacket is the largest that IP can describe.
	maxPacket = 65535
)

// message is the kernel's struct mmsghdr.
type message struct {
	header unix.Msghdr
	length uint32
	_      [4]byte
}

// target is a peer in the form in which a destination is looked up: both words of its range, masked; IPv4 is in
// the second one.
type target struct {
	prefix, mask [2]uint64
	version      byte // 4 or 6
	addressSize  uint32
	address      unix.RawSockaddrInet6 // large enough for both versions
}

// carrier is a tunnel at work. It and all that it points to is outside the Go heap.
type carrier struct {
	tun, socket, epoll int32
	room               uintptr // of each buffer
	targets            unsafe.Pointer
	count              uintptr
	// out are packets from the TUN device, in those from the socket, with a buffer each.
	out, in *[batch]message
	events  [4]unix.EpollEvent
	failed  native.Errno // why it ended, 0 when its input did
}

// serve carries packets until standard input ends.
func serve(text string) error {
	config, err := parse(text)
	if err != nil {
		return err
	}
	c, err := newCarrier(config)
	if err != nil {
		return err
	}
	if _, err := os.Stdout.WriteString(Ready); err != nil {
		return fmt.Errorf("say that the tunnel is ready: %w", err)
	}
	// From here on nothing is allocated, and the collector would wait for the loop without end.
	debug.SetGCPercent(-1)
	carry(c)
	if c.failed != 0 {
		return fmt.Errorf("wait for packets: %w", c.failed)
	}
	return nil
}

// newCarrier sets a carrier up over the files that this process was started with.
func newCarrier(config Config) (*carrier, error) {
	// A packet that is larger than it should be shows by filling its buffer.
	room := uintptr(config.MTU + 1)
	size := native.Reserved(unsafe.Sizeof(carrier{})) + native.Reserved(uintptr(len(config.Peers)+1)*unsafe.Sizeof(target{})) +
		2*(native.Reserved(batch*unsafe.Sizeof(message{}))+native.Reserved(batch*unsafe.Sizeof(unix.Iovec{}))+batch*native.Reserved(room))
	arena, err := native.NewArena(size)
	if err != nil {
		return nil, err
	}
	c := (*carrier)(arena.Take(unsafe.Sizeof(carrier{})))
	c.tun, c.socket, c.room = tunFile, socketFile, room
	c.targets, c.count = arena.Take(uintptr(len(config.Peers)+1)*unsafe.Sizeof(target{})), uintptr(len(config.Peers))
	for i, p := range config.Peers {
		*c.target(uintptr(i)) = newTarget(p)
	}
	c.out, c.in = messages(arena, room), messages(arena, room)
	// Of the device all is read that there is; where a datagram has to wait for room, so do those after it.
	if err := errors.Join(unix.SetNonblock(tunFile, true), unix.SetNonblock(socketFile, false)); err != nil {
		return nil, fmt.Errorf("set up the files that the starter of a tunnel must open: %w", err)
	}
	epoll, errno := native.EpollCreate()
	if errno != 0 {
		return nil, fmt.Errorf("make an epoll instance: %w", errno)
	}
	c.epoll = epoll
	for _, fd := range []int32{0, tunFile, socketFile} {
		event := &unix.EpollEvent{Events: unix.EPOLLIN, Fd: fd}
		if errno := native.EpollControl(epoll, unix.EPOLL_CTL_ADD, fd, event); errno != 0 {
			return nil, fmt.Errorf("watch file %d: %w", fd, errno)
		}
	}
	return c, nil
}

// messages are headers with a buffer each.
func messages(arena *native.Arena, room uintptr) *[batch]message {
	all := (*[batch]message)(arena.Take(batch * unsafe.Sizeof(message{})))
	vectors := (*[batch]unix.Iovec)(arena.Take(batch * unsafe.Sizeof(unix.Iovec{})))
	for i := range all {
		vectors[i].Base = (*byte)(arena.Take(room))
		vectors[i].SetLen(int(room))
		all[i].header.Iov = &vectors[i]
		all[i].header.SetIovlen(1)
	}
	return all
}

// newTarget puts a peer into the form for looking up.
func newTarget(p Peer) target {
	t := target{version: 6}
	prefix := p.Pods.Masked()
	bits := prefix.Bits()
	if prefix.Addr().Is4() {
		t.version, bits = 4, bits+96
	}
	t.prefix = words(prefix.Addr())
	for i := range bits {
		t.mask[i/64] |= 1 << (63 - i%64)
	}
	if t.version == 4 {
		t.mask[0], t.mask[1] = 0, t.mask[1]&0xffffffff
	}
	if node := p.Node.Addr(); node.Is4() {
		at := (*unix.RawSockaddrInet4)(unsafe.Pointer(&t.address))
		at.Family, at.Addr, t.addressSize = unix.AF_INET, node.As4(), unix.SizeofSockaddrInet4
	} else {
		t.address.Family, t.address.Addr, t.addressSize = unix.AF_INET6, node.As16(), unix.SizeofSockaddrInet6
	}
	// Both kinds of addresses have their port in the same place, in network order.
	binary.BigEndian.PutUint16((*[2]byte)(unsafe.Pointer(&t.address.Port))[:], p.Node.Port())
	return t
}

// words are the bits of an address: of IPv4, in the low half of the second word.
func words(a netip.Addr) [2]uint64 {
	if a.Is4() {
		b := a.As4()
		return [2]uint64{0, uint64(binary.BigEndian.Uint32(b[:]))}
	}
	b := a.As16()
	return [2]uint64{binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])}
}

// Verb is the last argument of a program that is to become a tunnel.
const Verb = "udp-tunnel"

// The files that a tunnel is started with, besides the standard ones. It ends when its standard input does.
const (
	tunFile    = 3 // a TUN device without packet information
	socketFile = 4 // a UDP socket, bound
)

// Ready is what a tunnel writes to its standard output once it carries packets.
const Ready = "ready\n"

// Config says what a tunnel carries.
type Config struct {
	// MTU is the size of the largest packet, in bytes.
	MTU   int    `json:"mtu"`
	Peers []Peer `json:"peers"`
}

// Peer is a node to which packets are carried. Where the ranges of several hold an address, the first is taken.
type Peer struct {
	Pods netip.Prefix   `json:"pods"`
	Node netip.AddrPort `json:"node"`
}

// flagName is the only flag of a tunnel. It stands before the verb, so that a program that can't become a tunnel refuses to
// start in place of doing something else.
const flagName = "--tunnel="

// Arguments start this program as a tunnel.
func (c Config) Arguments() ([]string, error) {
	text, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("write down the tunnel's peers: %w", err)
	}
	return []string{flagName + string(text), Verb}, nil
}

// Asked says whether this process was started to be a tunnel. Programs and tests that open labs call it first thing.
func Asked() bool {
	return len(os.Args) == 3 && os.Args[2] == Verb && strings.HasPrefix(os.Args[1], flagName)
}

// parse reads what Arguments wrote.
func parse(text string) (Config, error) {
	var c Config
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return c, fmt.Errorf("read what the tunnel is to carry: %w", err)
	}
	switch {
	case c.MTU < 1 || c.MTU > maxPacket:
		return c, fmt.Errorf("a tunnel for packets of %d bytes: need 1 to %d", c.MTU, maxPacket)
	case slices.ContainsFunc(c.Peers, func(p Peer) bool { return !p.Pods.IsValid() || !p.Node.IsValid() }):
		return c, errors.New("a peer of the tunnel has no addresses")
	}
	return c, nil
}

// Become makes this process the tunnel that Arguments described, and returns its exit status when its standard input ends.
func Become() int {
	err := serve(strings.TrimPrefix(os.Args[1], flagName))
	if err != nil {
		fmt.Fprintln(os.Stderr, "netdelta udp-tunnel:", err)
		return 1
	}
	return 0
}

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
