package path_test

import (
	"encoding/binary"
	"net/netip"
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

// vxlan is a frame in a tunnel between two nodes.
func vxlan(from, to netip.Addr, frame []byte) []byte {
	const someone, port = 40000, 4789
	return ethernet(ipPacket(17, from, to, udp(someone, port, append([]byte{8, 0, 0, 0, 0, 16, 1, 0}, frame...))))
}
