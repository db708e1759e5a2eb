package path

import (
	"encoding/binary"
	"slices"

	"netdelta/network"
)

// none is the name of no encapsulation.
const none = "none"

// encapsulation is a way of wrapping packets in IP packets.
type encapsulation struct {
	name string
	// protocol is the protocol of the outer IP packet. For UDP, ports are the destination's.
	protocol network.Protocol
	ports    []uint16
	// unwrap returns what is inside, given what comes after the outer transport header, and false where the header shows
	// that it is something else.
	unwrap func(b []byte) ([]byte, bool)
	// ethernet says that a frame is inside; otherwise it is an IP packet. What is sealed can't be read.
	ethernet, sealed bool
}

// encapsulations lists those that a decoder recognises, by the further ports, too, that tunnels have chosen, by their names.
func encapsulations(ports map[string][]uint16) []encapsulation {
	all := []encapsulation{
		// RFC 7348; 8472 is the port that Linux took before there was a number.
		{name: "vxlan", protocol: network.UDP, ports: []uint16{4789, 8472}, unwrap: vxlan, ethernet: true},
		{name: "geneve", protocol: network.UDP, ports: []uint16{network.GenevePort}, unwrap: geneve, ethernet: true},
		{name: "udp-tun", protocol: network.UDP, ports: []uint16{network.UDPTunnelPort}, unwrap: bare},
		{name: "wireguard", protocol: network.UDP, ports: []uint16{network.WireGuardPort}, unwrap: wireguard, sealed: true},
		{name: "esp", protocol: network.ProtocolESP, unwrap: esp, sealed: true},
		{name: "ipip", protocol: network.ProtocolIPIP, unwrap: version(4)},
		{name: "ipip", protocol: network.ProtocolIPIP6, unwrap: version(6)},
		{name: "gre", protocol: network.ProtocolGRE, unwrap: gre(typeIPv4, typeIPv6)},
		{name: "gretap", protocol: network.ProtocolGRE, unwrap: gre(typeEthernet), ethernet: true},
	}
	for i, e := range all {
		all[i].ports = slices.Concat(e.ports, ports[e.name])
	}
	return all
}

// vxlan takes the VXLAN header off (RFC 7348, section 5): the flag of a valid identifier, and all else that is reserved
// zero.
func vxlan(b []byte) ([]byte, bool) {
	const header = 8
	if len(b) < header || b[0] != 0x08 || b[1]|b[2]|b[3]|b[7] != 0 {
		return nil, false
	}
	return b[header:], true
}

// networkNumber is the number of the network that a header names. VXLAN and Geneve have one, both at the same place.
func networkNumber(name string, b []byte) uint32 {
	const at, size = 4, 8
	if name != "vxlan" && name != "geneve" || len(b) < size {
		return 0
	}
	return binary.BigEndian.Uint32(b[at:]) >> 8
}

// typeEthernet is the number of a whole frame (transparent Ethernet bridging).
const typeEthernet = 0x6558

// geneve takes the Geneve header and its options off (RFC 8926, section 3.4): of version 0, around a frame.
func geneve(b []byte) ([]byte, bool) {
	const header, protocol, word = 8, 2, 4
	if len(b) < header || b[0]>>6 != 0 || b[7] != 0 || binary.BigEndian.Uint16(b[protocol:]) != typeEthernet {
		return nil, false
	}
	size := header + int(b[0]&0x3f)*word
	if len(b) < size {
		return nil, false
	}
	return b[size:], true
}

// gre takes off a GRE header of version 0 before the given types of packets, with the checksum, key and number that its flags
// name (RFC 2784, RFC 2890).
func gre(types ...uint16) func([]byte) ([]byte, bool) {
	return func(b []byte) ([]byte, bool) {
		const header, protocol, word = 4, 2, 4
		const checksum, key, number, reserved = 0x8000, 0x2000, 0x1000, 0x4fff
		if len(b) < header {
			return nil, false
		}
		flags, size, known := binary.BigEndian.Uint16(b), header, slices.Contains(types, binary.BigEndian.Uint16(b[protocol:]))
		for _, f := range []uint16{checksum, key, number} {
			if flags&f != 0 {
				size += word
			}
		}
		if !known || flags&reserved != 0 || len(b) < size {
			return nil, false
		}
		return b[size:], true
	}
}

// version has nothing to take off a packet of a version of IP.
func version(of byte) func([]byte) ([]byte, bool) {
	return func(b []byte) ([]byte, bool) { return b, len(b) > 0 && b[0]>>4 == of }
}

// bare has nothing to take off: the packet is all that a datagram carries.
func bare(b []byte) ([]byte, bool) { return b, len(b) > 0 }

// wireguard recognises the data messages of WireGuard (section 5.4.6 of its white paper).
func wireguard(b []byte) ([]byte, bool) {
	const header, data = 16, 4
	return nil, len(b) >= header && b[0] == data && b[1]|b[2]|b[3] == 0
}

// esp recognises the beginning of ESP (RFC 4303, section 2.1): its association has a number that is not reserved.
func esp(b []byte) ([]byte, bool) {
	const header, reserved = 8, 256
	return nil, len(b) >= header && binary.BigEndian.Uint32(b) >= reserved
}

// wrapping names the encapsulation that a plan makes, none if it makes none. Encryption is not one.
func wrapping(p network.Plan) string {
	for _, op := range p.Ops {
		switch op := op.(type) {
		case network.Vxlan:
			return "vxlan"
		case network.UDPTunnel:
			return "udp-tun"
		case network.Geneve:
			return "geneve"
		case network.Tunnel:
			return string(op.Kind)
		}
	}
	return none
}
