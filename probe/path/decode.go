package path

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"netdelta/network"
	"netdelta/testbed"
	"netdelta/unit"
)

// layers is how many IP headers a decoder looks for in one frame: a packet wrapped twice.
const layers = 3

// layer is an IP packet, and what it says of its transport.
type layer struct {
	source, destination netip.AddrPort // ports are 0 where there are none
	protocol            network.Protocol
	// size is the packet's, as its header has it; 0 where it does not say (jumbograms).
	size     unit.Bytes
	fragment bool
	// id is the same in all fragments of a packet.
	id uint32
}

// frame is what a decoder made of a frame.
type frame struct {
	// layer holds the IP packets, the outermost first; wrap names what each is wrapped in, "" for the first.
	layer [layers]layer
	wrap  [layers]string
	depth int // of layer; 0 for what is no IP packet
	start unit.Bytes
	// sealed names what the innermost packet is encrypted by, "" if it can be read.
	sealed string
	// number is the number of the network that the last encapsulation names, 0 without.
	number uint32
	// headers is the length from the outermost IP header to the innermost payload; 0 where that was not reached.
	headers unit.Bytes
}

// decoder takes frames apart: Ethernet, VLAN, IPv4, IPv6, UDP, TCP, and encapsulations.
type decoder struct{ known []encapsulation }

// packet looks into a sampled packet.
func (d decoder) packet(p testbed.Packet) frame {
	if p.Bare {
		return d.layers(p.Head, p.Head)
	}
	return d.decode(p.Head)
}

// decode looks into the head of a frame. What it can't read it leaves out.
func (d decoder) decode(head []byte) frame {
	rest, ok := ethernet(head)
	if !ok {
		return frame{}
	}
	return d.layers(head, rest)
}

// layers looks into the IP packet that is the rest of a head.
func (d decoder) layers(head, rest []byte) frame {
	f := frame{start: unit.Bytes(len(head) - len(rest))}
	name := ""
	for f.depth < layers {
		l, payload, ok := ip(rest)
		if !ok {
			return f
		}
		f.layer[f.depth], f.wrap[f.depth] = l, name
		f.depth++
		if payload == nil {
			return f
		}
		inner, ok := transport(&f.layer[f.depth-1], payload)
		if !ok {
			return f
		}
		rest, name = d.unwrap(f.layer[f.depth-1], inner)
		if n := networkNumber(name, inner); n != 0 {
			f.number = n
		}
		switch {
		case name != "" && rest == nil:
			f.sealed = name
			return f
		case name == "":
			f.headers = unit.Bytes(len(head)-len(inner)) - f.start
			return f
		}
	}
	return f
}

// unwrap takes an encapsulation off, "" if there is none.
func (d decoder) unwrap(outer layer, b []byte) (inner []byte, name string) {
	for _, e := range d.known {
		if e.protocol != outer.protocol || e.ports != nil && !slices.Contains(e.ports, outer.destination.Port()) {
			continue
		}
		inner, ok := e.unwrap(b)
		if ok && e.sealed {
			return nil, e.name
		}
		if ok && e.ethernet {
			inner, ok = ethernet(inner)
		}
		if _, _, readable := ip(inner); ok && readable {
			return inner, e.name
		}
	}
	return nil, ""
}

// Numbers of the link layer.
const (
	typeIPv4   = 0x0800
	typeARP    = 0x0806
	typeIPv6   = 0x86dd
	typeVLAN   = 0x8100
	typeVLANs  = 0x88a8 // the outer tag of two
	tagsAtMost = 2
)

// ethernet takes the Ethernet header off, with VLAN tags, and is false for what is not IP.
func ethernet(b []byte) ([]byte, bool) {
	const addresses, tag = 12, 4
	for range tagsAtMost + 1 {
		if len(b) < int(ethernetHeader) {
			return nil, false
		}
		switch binary.BigEndian.Uint16(b[addresses:]) {
		case typeIPv4, typeIPv6:
			return b[ethernetHeader:], true
		case typeVLAN, typeVLANs:
			b = b[tag:] // the addresses are of no use here
		default:
			return nil, false
		}
	}
	return nil, false
}

// ip reads an IP header. The payload is nil where it is not the beginning of a transport's packet.
func ip(b []byte) (layer, []byte, bool) {
	if len(b) < int(ipv4Header) {
		return layer{}, nil, false
	}
	switch b[0] >> 4 {
	case 4:
		return ip4(b)
	case 6:
		return ip6(b)
	}
	return layer{}, nil, false
}

// ip4 reads an IPv4 header (RFC 791, section 3.1).
func ip4(b []byte) (layer, []byte, bool) {
	header := int(b[0]&0xf) * 4
	if header < int(ipv4Header) || len(b) < header {
		return layer{}, nil, false
	}
	const offset, more = 0x1fff, 0x2000
	cut := binary.BigEndian.Uint16(b[6:])
	l := layer{
		source:      netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[12:16])), 0),
		destination: netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[16:20])), 0),
		protocol:    network.Protocol(b[9]),
		size:        unit.Bytes(binary.BigEndian.Uint16(b[2:])),
		fragment:    cut&(offset|more) != 0,
		id:          uint32(binary.BigEndian.Uint16(b[4:])),
	}
	if cut&offset != 0 {
		return l, nil, true
	}
	return l, b[header:], true
}

// Extension headers of IPv6 (RFC 8200, section 4).
const (
	hopByHop           = 0
	routing            = 43
	fragmentation      = 44
	destinationOptions = 60
	extensionsAtMost   = 8
)

// ip6 reads an IPv6 header and its extensions (RFC 8200, sections 3 and 4).
func ip6(b []byte) (layer, []byte, bool) {
	if len(b) < int(ipv6Header) {
		return layer{}, nil, false
	}
	l := layer{
		source:      netip.AddrPortFrom(netip.AddrFrom16([16]byte(b[8:24])), 0),
		destination: netip.AddrPortFrom(netip.AddrFrom16([16]byte(b[24:40])), 0),
	}
	if length := binary.BigEndian.Uint16(b[4:]); length != 0 {
		l.size = unit.Bytes(length) + ipv6Header
	}
	next, rest := b[6], b[ipv6Header:]
	for range extensionsAtMost {
		const least = 8
		switch next {
		case hopByHop, routing, destinationOptions, fragmentation:
		default:
			l.protocol = network.Protocol(next)
			return l, rest, true
		}
		if len(rest) < least {
			return l, nil, true
		}
		size := least
		if next == fragmentation {
			l.fragment, l.id = true, binary.BigEndian.Uint32(rest[4:])
			if binary.BigEndian.Uint16(rest[2:])&^7 != 0 {
				return l, nil, true
			}
		} else {
			size += int(rest[1]) * 8
		}
		if len(rest) < size {
			return l, nil, true
		}
		next, rest = rest[0], rest[size:]
	}
	return l, nil, true
}

// transport fills in the ports and takes the header off. Other protocols than TCP and UDP are as they are.
func transport(l *layer, b []byte) ([]byte, bool) {
	var header int
	switch l.protocol {
	case network.UDP:
		header = int(udpHeader)
	case network.TCP:
		const least, length = 20, 12
		if len(b) < least {
			return nil, false
		}
		header = max(int(b[length]>>4)*4, least)
	default:
		return b, true
	}
	if len(b) < header {
		return nil, false
	}
	l.source = netip.AddrPortFrom(l.source.Addr(), binary.BigEndian.Uint16(b))
	l.destination = netip.AddrPortFrom(l.destination.Addr(), binary.BigEndian.Uint16(b[2:]))
	return b[header:], true
}

// wrapping is what one of the packets is wrapped in, and how much that adds (0 is unknown).
func (f frame) wrapping(at int) (name string, adds unit.Bytes) {
	switch outer, inner := f.layer[0].size, f.layer[at].size; {
	case f.sealed != "" && at == f.depth-1:
		return f.sealed, 0
	case at == 0:
		return none, 0
	case outer > inner && inner > 0:
		adds = outer - inner
	}
	return f.wrap[at], adds
}

// Protocols that serve the network itself.
const (
	icmp  network.Protocol = 1
	igmp  network.Protocol = 2
	icmp6 network.Protocol = 58
)

// control tells whether a frame serves the network itself: requests for addresses, memberships of groups, errors.
func (f frame) control(head []byte) bool {
	if f.sealed != "" {
		return false
	}
	if f.depth == 0 {
		return len(head) >= int(ethernetHeader) && binary.BigEndian.Uint16(head[12:]) == typeARP
	}
	p := f.layer[f.depth-1].protocol
	return p == icmp || p == igmp || p == icmp6
}

// fragment tells whether any of the packets is one.
func (f frame) fragment() bool {
	return slices.ContainsFunc(f.layer[:f.depth], func(l layer) bool { return l.fragment })
}

// onWire is the size of the outermost IP packet when it is sent: the size of one segment of a train. 0 is unknown.
func (f frame) onWire(p testbed.Packet) unit.Bytes {
	switch {
	case f.depth == 0:
		return 0
	case p.Segment == 0 && f.layer[0].size > 0:
		return f.layer[0].size
	case p.Segment == 0:
		return p.Length - f.start
	case f.headers == 0:
		return 0
	}
	// The last segment of a short train may be all there is.
	return min(f.headers+p.Segment, p.Length-f.start)
}
