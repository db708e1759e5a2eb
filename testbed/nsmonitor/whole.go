package nsmonitor

import (
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"

	"netdelta/testbed"
	"netdelta/unit"
)

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
