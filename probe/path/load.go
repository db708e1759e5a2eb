package path

import (
	"net/netip"

	"netdelta/network"
	"netdelta/testbed"
	"netdelta/unit"
)

// Load is what a workload moved while it was watched.
type Load struct {
	// Protocol is TCP or UDP.
	Protocol network.Protocol
	// Server is where the client reached the server; its port is 0 where the client finds its own way to several of them, and not
	// valid where a plan says how they are reached.
	Server netip.AddrPort
	// Requests and Responses are the bytes of payload that arrived from client to server, and back. A stream has no
	// responses.
	Requests, Responses unit.Bytes
	// Opaque says that it is not known to the byte what went over the wire, nor which way: Both is then the least that it was, both
	// ways together, and 0 if not even that is known.
	Opaque bool
	Both   unit.Bytes
	// Peers are the other pods that the client talks to, where several serve it; then no port stands for the server.
	Peers []testbed.Pod
	// Message is the largest datagram's payload, zero for TCP: datagrams larger than the MTU are fragmented by right.
	Message unit.Bytes
	// Connections are the ones of TCP that were opened, and closed, meanwhile; 0 where they were there before.
	Connections int64
}

// payload is what the load moved in all.
func (l Load) payload() unit.Bytes { return l.Requests + l.Responses + l.Both }

// Sizes of headers.
const (
	ethernetHeader unit.Bytes = 14
	ipv4Header     unit.Bytes = 20
	ipv6Header     unit.Bytes = 40
	udpHeader      unit.Bytes = 8
)

// datagram is the size of the IP packet that carries a payload to the address in a datagram.
func datagram(payload unit.Bytes, to netip.Addr) unit.Bytes {
	if to.Is6() {
		return payload + udpHeader + ipv6Header
	}
	return payload + udpHeader + ipv4Header
}

// fragments tells whether the load's own datagrams are larger than the path's MTU.
func (l Load) fragments(mtu unit.Bytes) bool {
	return l.Protocol == network.UDP && datagram(l.Message, l.Server.Addr()) > mtu
}
