package nsmonitor

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"netdelta/testbed"
	"netdelta/unit"
)

const (
	// echoWithin is how long an answer may take, and echoTries how often a packet is sent that may have been lost by chance. The first one
	// waits for the neighbour's link address, for which the kernel asks again after a second.
	echoWithin = 300 * time.Millisecond
	echoTries  = 2
	firstTries = 8
	// echoHeader is how long the header of ICMP is.
	echoHeader = 8
)

// pings are sent from a raw socket that is connected to where they go.
type pings struct {
	fd int
	// header is how long the IP header is, and least what every network carries of this version of IP, with all headers.
	header, least   int
	request, answer byte
	// bare says that packets are read without their IP header.
	bare bool
}

// LargestPacket finds out how large packets can be, in bytes with all headers, that get from the namespace of the calling thread to an
// address and back, by pings that must not be cut up. device is the MTU of the way's first device, and the most that way can be.
func LargestPacket(to netip.Addr) (way, device int, err error) {
	open := pingsOver4
	if to.Is6() {
		open = pingsOver6
	}
	p, device, err := open(to)
	if err != nil {
		return 0, 0, fmt.Errorf("ready a socket for pings to %s: %w", to, err)
	}
	defer func() { _ = unix.Close(p.fd) }()
	answered := func(size, tries int) bool {
		for range tries {
			if p.echo(size) {
				return true
			}
		}
		return false
	}
	passes := func(size int) bool { return answered(size, echoTries) }
	if !answered(p.least, firstTries) {
		return 0, device, errors.New("it does not answer pings")
	}
	return LargestPassing(p.least, device, passes), device, nil
}

// LargestPassing is the largest size up to most that passes, where least does, and none above one that does not.
func LargestPassing(least, most int, passes func(size int) bool) int {
	if most <= least || passes(most) { // nearly always
		return most
	}
	low, high := least, most // the first passes, the second does not
	for high-low > 1 {
		if middle := (low + high) / 2; passes(middle) {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

// pingsOver4 are pings over IPv4, and pingsOver6 those over IPv6. They are never cut up, whatever was learned of the way before.
func pingsOver4(to netip.Addr) (p pings, device int, err error) {
	p = pings{header: 20, least: 576, request: 8, answer: 0}
	device, err = p.connect(unix.AF_INET, unix.IPPROTO_ICMP, &unix.SockaddrInet4{Addr: to.As4()}, unix.IPPROTO_IP, unix.IP_MTU, map[int]int{unix.IP_MTU_DISCOVER: unix.IP_PMTUDISC_PROBE})
	return p, device, err
}

func pingsOver6(to netip.Addr) (p pings, device int, err error) {
	p = pings{header: 40, least: 1280, request: 128, answer: 129, bare: true}
	device, err = p.connect(unix.AF_INET6, unix.IPPROTO_ICMPV6, &unix.SockaddrInet6{Addr: to.As16()}, unix.IPPROTO_IPV6, unix.IPV6_MTU,
		map[int]int{unix.IPV6_MTU_DISCOVER: unix.IPV6_PMTUDISC_PROBE, unix.IPV6_DONTFRAG: 1})
	return p, device, err
}

// connect opens the socket, with options of a level, of which mtu tells the MTU of the way's first device.
func (p *pings) connect(family, protocol int, to unix.Sockaddr, level, mtu int, options map[int]int) (device int, err error) {
	if p.fd, err = unix.Socket(family, unix.SOCK_RAW|unix.SOCK_CLOEXEC, protocol); err != nil {
		return 0, err
	}
	wait := unix.NsecToTimeval(echoWithin.Nanoseconds())
	err = errors.Join(unix.SetsockoptTimeval(p.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait), unix.Connect(p.fd, to))
	for name, value := range options {
		err = errors.Join(err, unix.SetsockoptInt(p.fd, level, name, value))
	}
	if err == nil {
		device, err = unix.GetsockoptInt(p.fd, level, mtu)
	}
	if err != nil {
		_ = unix.Close(p.fd)
	}
	return device, err
}

// echo sends a ping of a size with all headers, and says whether it is answered.
func (p pings) echo(size int) bool {
	packet := make([]byte, size-p.header)
	packet[0] = p.request
	binary.BigEndian.PutUint16(packet[4:], uint16(unix.Getpid()))
	binary.BigEndian.PutUint16(packet[6:], uint16(size))
	binary.BigEndian.PutUint16(packet[2:], checksum(packet)) // over IPv6 the kernel's takes its place
	if unix.Send(p.fd, packet, 0) != nil {
		return false
	}
	got := make([]byte, size+p.header+echoHeader)
	for until := time.Now().Add(echoWithin); time.Now().Before(until); {
		n, err := unix.Read(p.fd, got)
		if err != nil {
			return false
		}
		at := 0
		if !p.bare {
			at = int(got[0]&15) * 4
		}
		if n >= at+echoHeader && got[at] == p.answer && bytes.Equal(got[at+4:at+8], packet[4:8]) {
			return true
		}
	}
	return false
}

// checksum is the one of RFC 1071.
func checksum(b []byte) uint16 {
	sum := uint32(0)
	for i := 0; i < len(b); i += 2 {
		word := uint32(b[i]) << 8
		if i+1 < len(b) {
			word |= uint32(b[i+1])
		}
		sum += word
	}
	sum = sum&0xffff + sum>>16
	return ^uint16(sum&0xffff + sum>>16)
}

// Sizes of the headers before a datagram's payload, and the largest packets that can have one: the whole of an IPv4 packet,
// but only what comes after the header of an IPv6 packet, is counted in 16 bits.
const (
	udpHeader             = 8
	ipv4Header            = 20
	ipv6Header            = 40
	largest4   unit.Bytes = 65535
	largest6   unit.Bytes = 65535 + ipv6Header
)

// payloadOf is what a datagram has to carry in order that its packet has a size.
func payloadOf(size unit.Bytes, to netip.Addr) (int, error) {
	headers, largest := unit.Bytes(ipv4Header+udpHeader), largest4
	if to.Is6() {
		headers, largest = ipv6Header+udpHeader, largest6
	}
	if size < headers || size > largest {
		return 0, fmt.Errorf("a packet with a datagram has %d to %d bytes", int64(headers), int64(largest))
	}
	return int(size - headers), nil
}

// SendWhole sends a datagram that must not be fragmented, as an IP packet of the given size, from the namespace of the calling
// thread. The error is a *testbed.TooLargeError where the sender's own kernel refuses the size.
func SendWhole(at netip.AddrPort, size unit.Bytes) error {
	payload, err := payloadOf(size, at.Addr())
	if err != nil {
		return err
	}
	family, level, discover, mtu, do := unix.AF_INET, unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_MTU, unix.IP_PMTUDISC_DO
	var remote unix.Sockaddr
	if at.Addr().Is4() {
		remote = &unix.SockaddrInet4{Port: int(at.Port()), Addr: at.Addr().As4()}
	} else {
		family, level, discover, mtu, do = unix.AF_INET6, unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_MTU, unix.IPV6_PMTUDISC_DO
		remote = &unix.SockaddrInet6{Port: int(at.Port()), Addr: at.Addr().As16()}
	}
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open a socket: %w", err)
	}
	defer func() { _ = unix.Close(fd) }()
	if err := unix.SetsockoptInt(fd, level, discover, do); err != nil {
		return fmt.Errorf("forbid fragmentation: %w", err)
	}
	if err := unix.Connect(fd, remote); err != nil {
		return fmt.Errorf("connect to %s: %w", at, err)
	}
	_, err = unix.Write(fd, make([]byte, payload))
	if !errors.Is(err, unix.EMSGSIZE) {
		return err
	}
	known, err := unix.GetsockoptInt(fd, level, mtu)
	if err != nil {
		return fmt.Errorf("ask for the path's MTU: %w", err)
	}
	return &testbed.TooLargeError{Size: size, MTU: unit.Bytes(known)}
}
