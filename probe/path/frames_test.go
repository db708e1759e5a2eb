package path_test

import (
	"encoding/binary"
	"net/netip"

	"netdelta/network"
)

// udp is a datagram with its header.
func udp(from, to uint16, payload []byte) []byte {
	b := binary.BigEndian.AppendUint16(nil, from)
	b = binary.BigEndian.AppendUint16(b, to)
	b = binary.BigEndian.AppendUint16(b, uint16(8+len(payload)))
	return append(append(b, 0, 0), payload...)
}

// ipPacket is an IP packet of the addresses' family with a transport's packet.
func ipPacket(protocol byte, from, to netip.Addr, transport []byte) []byte {
	if from.Is6() {
		b := binary.BigEndian.AppendUint16([]byte{0x60, 0, 0, 0}, uint16(len(transport)))
		b = append(b, protocol, 64)
		return append(append(append(b, from.AsSlice()...), to.AsSlice()...), transport...)
	}
	b := binary.BigEndian.AppendUint16([]byte{0x45, 0}, uint16(20+len(transport)))
	b = append(b, 0, 0, 0, 0, 64, protocol, 0, 0)
	return append(append(append(b, from.AsSlice()...), to.AsSlice()...), transport...)
}

// ethernet is a frame with an IP packet.
func ethernet(packet []byte) []byte {
	kind := uint16(0x0800)
	if packet[0]>>4 == 6 {
		kind = 0x86dd
	}
	return append(binary.BigEndian.AppendUint16(make([]byte, 12), kind), packet...)
}

// encapsulation names what a plan wraps packets in, "none" if it does not.
func encapsulation(p network.Plan) string {
	for _, op := range p.Ops {
		switch op := op.(type) {
		case network.Vxlan:
			return "vxlan"
		case network.Geneve:
			return "geneve"
		case network.UDPTunnel:
			return "udp-tun"
		case network.Tunnel:
			return string(op.Kind)
		}
	}
	return "none"
}

// wrapped is the frame of a packet where a hop sees it.
func wrapped(p network.Plan, h network.Hop, from, to netip.Addr, packet []byte) []byte {
	if !h.Encapsulated {
		return ethernet(packet)
	}
	const someone = 40000
	datagram := func(port uint16, header []byte, rest []byte) []byte {
		return ipPacket(17, from, to, udp(someone, port, append(header, rest...)))
	}
	bare := len(packet)
	switch encapsulation(p) {
	case "vxlan":
		packet = datagram(4789, []byte{8, 0, 0, 0, 0, 16, 1, 0}, ethernet(packet))
	case "geneve":
		packet = datagram(6081, []byte{0, 0, 0x65, 0x58, 0, 0, 1, 0}, ethernet(packet))
	case "udp-tun":
		packet = datagram(8285, nil, packet)
	case "ipip":
		protocol := byte(4)
		if from.Is6() {
			protocol = 41
		}
		packet = ipPacket(protocol, from, to, packet)
	case "gre":
		kind := uint16(0x0800)
		if from.Is6() {
			kind = 0x86dd
		}
		packet = ipPacket(47, from, to, append(binary.BigEndian.AppendUint16([]byte{0, 0}, kind), packet...))
	}
	if !h.Encrypted {
		return ethernet(packet)
	}
	least, _ := p.Adds(h)
	header := len(ipPacket(0, from, to, nil))
	payload := make([]byte, bare+int(least)-header)
	if p.Encryption.Wrap == "esp" {
		payload[0] = 1
		return ethernet(ipPacket(50, from, to, payload))
	}
	payload[8] = 4
	return ethernet(ipPacket(17, from, to, append(udp(51820, 51820, nil), payload[8:]...)))
}
