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
	// echoWithin is how long an answer may take, and echoTries how often a packet is sent that may have been lost by chance.
	echoWithin = 300 * time.Millisecond
	echoTries  = 2
	// echoHeaders is how long the headers of IPv4 and ICMP are.
	echoHeaders = 20 + 8
	// leastMTU is what every IPv4 network carries.
	leastMTU = 576
)

// LargestPacket finds out how large packets can be, in bytes with all headers, that get from the namespace of the calling thread to an IPv4
// address and back, by pings that must not be cut up. device is the MTU of the way's first device, and the most that way can be.
func LargestPacket(to netip.Addr) (way, device int, err error) {
	if !to.Is4() {
		return 0, 0, errors.New("it is found out over IPv4 alone")
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_ICMP)
	if err != nil {
		return 0, 0, fmt.Errorf("open a socket for pings: %w", err)
	}
	defer func() { _ = unix.Close(fd) }()
	wait := unix.NsecToTimeval(echoWithin.Nanoseconds())
	err = errors.Join(
		unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_PROBE), // never cut up, whatever was learned before
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait),
		unix.Connect(fd, &unix.SockaddrInet4{Addr: to.As4()}),
	)
	if err == nil {
		device, err = unix.GetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_MTU)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("ready a socket for pings to %s: %w", to, err)
	}
	passes := func(size int) bool {
		for range echoTries {
			if echo(fd, size) {
				return true
			}
		}
		return false
	}
	if !passes(leastMTU) {
		return 0, device, errors.New("it does not answer pings")
	}
	if passes(device) { // nearly always
		return device, device, nil
	}
	low, high := leastMTU, device // the first passes, the second does not
	for high-low > 1 {
		if middle := (low + high) / 2; passes(middle) {
			low = middle
		} else {
			high = middle
		}
	}
	return low, device, nil
}

// echo sends a ping of a size with all headers, and says whether it is answered.
func echo(fd, size int) bool {
	const request, answer = 8, 0
	packet := make([]byte, size-20)
	packet[0] = request
	binary.BigEndian.PutUint16(packet[4:], uint16(unix.Getpid()))
	binary.BigEndian.PutUint16(packet[6:], uint16(size))
	binary.BigEndian.PutUint16(packet[2:], checksum(packet))
	if unix.Send(fd, packet, 0) != nil {
		return false
	}
	got := make([]byte, size+echoHeaders)
	for until := time.Now().Add(echoWithin); time.Now().Before(until); {
		n, err := unix.Read(fd, got)
		if err != nil {
			return false
		}
		if header := int(got[0]&15) * 4; n >= header+8 && got[header] == answer && bytes.Equal(got[header+4:header+8], packet[4:8]) {
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
