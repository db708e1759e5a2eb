package inside

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"netdelta/testbed/nsmonitor"
)

// Passing is how large packets can be that get one way, in bytes with all headers.
type Passing struct {
	// Largest is the size of the largest that arrived.
	Largest int `json:"largest,omitempty"`
	// MTU is the most that the sender's kernel lets go this way: of its device, or what a router on the way has told it.
	MTU int `json:"mtu,omitempty"`
}

// Vanish says that packets get lost that their sender was allowed to send.
func (p Passing) Vanish() bool { return p.Largest < p.MTU }

// A question about the size of packets is a datagram: what it begins with, a number, and how large the answer's packet is to be, 0 for
// the smallest. The answer has the same, with the MTU of its sender's way back in place of the size.
const (
	question     = "netdelta?"
	questionSize = len(question) + 4
	// answerWithin is how long an answer may take, and askTimes how often a packet is sent that may have been lost by chance.
	answerWithin = 300 * time.Millisecond
	askTimes     = 2
	// streamSize is how much goes out and back by TCP where packets got lost: more than fits into a few full packets.
	streamSize   = 64 << 10
	streamWithin = 3 * time.Second
)

// headersOf are the headers of a datagram's packet, and smallest is the size that every network carries.
func headersOf(at netip.Addr) (headers, smallest int) {
	if at.Unmap().Is4() {
		return 28, 576
	}
	return 48, 1280
}

// keepWhole has a socket's packets not be cut up, and smaller ones sent only where a router asks for that. A socket of IPv6 may carry IPv4.
func keepWhole(c syscall.RawConn) error {
	var failed error
	err := c.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_DO)
		if domain, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_DOMAIN); err == nil && domain == unix.AF_INET6 {
			failed = errors.Join(failed, unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_DO))
		}
	})
	return errors.Join(err, failed)
}

// listenWhole opens a port for datagrams that are not cut up.
func listenWhole(port string) (net.PacketConn, error) {
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error { return keepWhole(c) }}
	return lc.ListenPacket(context.Background(), "udp", ":"+port)
}

// answerPackets sends back what comes, and answers questions about the size of packets, until the port is closed.
func answerPackets(packets net.PacketConn) {
	b := make([]byte, 1<<16)
	for {
		n, from, err := packets.ReadFrom(b)
		if err != nil {
			return
		}
		answer := b[:n]
		if size, is := asksFor(answer); is {
			to := from.(*net.UDPAddr).AddrPort()
			headers, _ := headersOf(to.Addr())
			answer = append(make([]byte, 0, 1<<16), b[:questionSize]...)
			mtu, err := mtuTo(to)
			if err != nil {
				mtu = 0
			}
			binary.BigEndian.PutUint16(answer[len(question)+2:], uint16(mtu))
			answer = append(answer, make([]byte, max(size-headers-questionSize, 0))...)
		}
		_, _ = packets.WriteTo(answer, from) // who asks sees what is missing
	}
}

// asksFor is how large the packet of the answer to a question is to be; false where it is none.
func asksFor(b []byte) (size int, is bool) {
	if len(b) < questionSize || !bytes.HasPrefix(b, []byte(question)) {
		return 0, false
	}
	return int(binary.BigEndian.Uint16(b[len(question)+2:])), true
}

// mtuTo is the MTU of the way to an address, as this namespace's kernel knows it.
func mtuTo(at netip.AddrPort) (int, error) {
	c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(at.Addr().Unmap(), at.Port())))
	if err != nil {
		return 0, err
	}
	defer func() { _ = c.Close() }() // nothing was sent
	return mtuOf(c, at.Addr())
}

// mtuOf is the MTU of a connected socket's way.
func mtuOf(c *net.UDPConn, at netip.Addr) (mtu int, err error) {
	level, option := unix.IPPROTO_IP, unix.IP_MTU
	if !at.Unmap().Is4() {
		level, option = unix.IPPROTO_IPV6, unix.IPV6_MTU
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	controlled := raw.Control(func(fd uintptr) { mtu, err = unix.GetsockoptInt(int(fd), level, option) })
	return min(mtu, 1<<16-1), errors.Join(controlled, err)
}

// asker asks about the size of packets.
type asker struct {
	c                 *net.UDPConn
	at                netip.AddrPort
	headers, smallest int
	number            uint16
}

// ask sends a question in a packet of one size, for an answer of another, both with all headers and 0 for the smallest. It returns the
// MTU of the way back, false where no answer came.
func (a *asker) ask(size, back int) (mtu int, answered bool) {
	b := make([]byte, max(size-a.headers, questionSize))
	copy(b, question)
	binary.BigEndian.PutUint16(b[len(question)+2:], uint16(back))
	got := make([]byte, 1<<16)
	for range askTimes {
		a.number++
		binary.BigEndian.PutUint16(b[len(question):], a.number)
		until := time.Now().Add(answerWithin)
		if a.c.SetReadDeadline(until) != nil {
			return 0, false
		}
		if _, err := a.c.Write(b); err != nil {
			if errors.Is(err, unix.EMSGSIZE) {
				return 0, false // a router has told that it is too large
			}
			continue
		}
		for {
			n, err := a.c.Read(got)
			if err != nil {
				break
			}
			told, is := asksFor(got[:n])
			if is && binary.BigEndian.Uint16(got[len(question):]) == a.number && n >= back-a.headers {
				return told, true
			}
		}
	}
	return 0, false
}

// tryWhole finds out how large packets can be to an answerer and back. A router that has packets made smaller is no obstacle: what its
// sender then knows as the MTU of the way is what counts.
func tryWhole(at netip.AddrPort) (o Outcome, err error) {
	at = netip.AddrPortFrom(at.Addr().Unmap(), at.Port())
	c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(at))
	if err != nil {
		return o, err
	}
	defer func() { _ = c.Close() }() // it has served
	raw, err := c.SyscallConn()
	if err == nil {
		err = keepWhole(raw)
	}
	if err != nil {
		return o, err
	}
	a := &asker{c: c, at: at}
	a.headers, a.smallest = headersOf(at.Addr())
	var there int
	if o.Out, there = a.out(); there > 0 {
		o.Back = a.back(there)
	}
	if o.Out.Vanish() || o.Back.Vanish() {
		o.Stuck = !streams(at)
	}
	return o, nil
}

// out is how large packets can be to the other end, and there the MTU of the way back from it, 0 where nothing answers.
func (a *asker) out() (p Passing, there int) {
	mtu, err := mtuOf(a.c, a.at.Addr())
	there, answered := a.ask(0, 0)
	if err != nil || !answered {
		return p, 0
	}
	passes := func(size int) bool { _, passed := a.ask(size, 0); return passed }
	return a.passing(mtu, passes, func() (int, bool) {
		told, err := mtuOf(a.c, a.at.Addr())
		return told, err == nil
	}), there
}

// back is how large packets can be that come back, of the size that the other end's kernel takes.
func (a *asker) back(mtu int) Passing {
	passes := func(size int) bool { _, passed := a.ask(0, size); return passed }
	return a.passing(mtu, passes, func() (int, bool) { return a.ask(0, 0) })
}

// passing is how large packets can be one way, whose MTU its sender knows: now, and by what a router has told it meanwhile, false where that
// can't be had.
func (a *asker) passing(mtu int, passes func(size int) bool, now func() (mtu int, known bool)) Passing {
	for !passes(mtu) {
		told, known := now()
		if !known || told >= mtu || told <= 0 {
			if mtu <= a.smallest || !passes(a.smallest) {
				return Passing{0, mtu}
			}
			return Passing{nsmonitor.LargestPassing(a.smallest, mtu-1, passes), mtu}
		}
		mtu = told
	}
	return Passing{mtu, mtu}
}

// streams says whether a stream of full packets comes back by TCP: its ends may agree on smaller ones, or find out about the way.
func streams(at netip.AddrPort) bool {
	c, err := net.DialTimeout("tcp", at.String(), streamWithin)
	if err != nil {
		return false
	}
	defer func() { _ = c.Close() }() // it has served
	if c.SetDeadline(time.Now().Add(streamWithin)) != nil {
		return false
	}
	go func() { _, _ = c.Write(make([]byte, streamSize)) }() // who reads sees what is missing
	n, err := io.Copy(io.Discard, io.LimitReader(c, streamSize))
	return err == nil && n == streamSize
}
