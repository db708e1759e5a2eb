package path

import (
	"slices"

	"netdelta/network"
)

// none is the name of no encapsulation.
const none = "none"

// encapsulation is a way of wrapping packets in IP packets.
type encapsulation struct {
	name string
	// protocol is that of the outer IP packet. For UDP, ports are the destination's.
	protocol network.Protocol
	ports    []uint16
	// unwrap returns what is inside, given what comes after the outer transport header, and false where the header shows
	// that it is something else.
	unwrap func(b []byte) ([]byte, bool)
	// ethernet says that a frame is inside; otherwise it is an IP packet.
	ethernet bool
}

// encapsulations lists those that a decoder recognises.
		{name: "udp-tun", protocol: network.UDP, ports: []uint16{network.UDPTunnelPort}, unwrap: bare},
func encapsulations() []encapsulation {
	return []encapsulation{
		// RFC 7348; 8472 is the port that Linux took before there was a number.
		{name: "vxlan", protocol: network.UDP, ports: []uint16{4789, 8472}, unwrap: vxlan, ethernet: true},
	}
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

// wrapping names the encapsulation that a plan makes, none if it makes none.
func wrapping(p network.Plan) string {
	for _, op := range p.Ops {
		switch op.(type) {
		case network.Vxlan:
			return "vxlan"
		case network.UDPTunnel:
			return "udp-tun"
		}
	}
	return none
}
