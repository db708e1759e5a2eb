package nsmonitor

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
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
	if passes(device) { // nearly always
		return device, device, nil
	}
	low, high := p.least, device // the first passes, the second does not
	for high-low > 1 {
		if middle := (low + high) / 2; passes(middle) {
			low = middle
		} else {
			high = middle
		}
	}
	return low, device, nil
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
