package network

import (
	"fmt"
	"net/netip"

	"netdelta/result"
	"netdelta/unit"
)

// knownFamily refuses what is no family.
func knownFamily(f result.Family) error {
	switch f {
	case "", result.IPv4, result.IPv6:
		return nil
	}
	return fmt.Errorf("address family %q: need %s or %s", f, result.IPv4, result.IPv6)
}

// familyName is the name for people.
func familyName(f result.Family) string { return byFamily(f, "IPv4", "IPv6") }

// byFamily is one value under IPv4, which "" is too, and another under IPv6.
func byFamily[T any](f result.Family, four, six T) T {
	if f == result.IPv6 {
		return six
	}
	return four
}

// inFamily tells whether an address is of the family.
func inFamily(f result.Family, a netip.Addr) bool { return a.Is6() == (f == result.IPv6) }

// leastMTU is the smallest MTU that pods may have: the least of a link that carries IPv6 (RFC 8200, section 5), or the
// datagram that each IPv4 host must be able to receive whole (RFC 791, section 3.1).
func leastMTU(f result.Family) unit.Bytes { return byFamily[unit.Bytes](f, 576, 1280) }

// ipHeader is the size of a packet's IP header without options or extensions.
func ipHeader(f result.Family) unit.Bytes { return byFamily[unit.Bytes](f, 20, 40) }

// nodeAddress is the underlay address of a node on a segment, with the underlay's prefix length.
func nodeAddress(f result.Family, segment uint8, node int) netip.Prefix {
	return byFamily(f, benchmark4(18, segment, byte(node+1), 24), netip.PrefixFrom(benchmark6(uint16(segment), byte(node+1)), 64))
}

// innerAddress is the address of a node inside an encrypting device, with the prefix length of the range of all nodes' addresses.
func innerAddress(f result.Family, node int) netip.Prefix {
	return byFamily(f, benchmark4(18, innerSegment, byte(node+1), 24), netip.PrefixFrom(benchmark6(innerSegment, byte(node+1)), 64))
}

// innerSegment is where the addresses of nodes inside an encrypting device are.
const innerSegment = 1

// podPrefix is the range of a node's pods.
func podPrefix(f result.Family, node int) netip.Prefix {
	return byFamily(f, benchmark4(19, byte(node), 0, 24), netip.PrefixFrom(benchmark6(podSubnets6+uint16(node), 0), 64))
}

// podAddress is the address of pod k of a node.
func podAddress(f result.Family, node, k int) netip.Addr {
	return byFamily(f, benchmark4(19, byte(node), byte(10+k), 32).Addr(), benchmark6(podSubnets6+uint16(node), byte(0x10+k)))
}

// podBits is the prefix length of the range that holds the pods of all nodes.
func podBits(f result.Family) int { return byFamily(f, 16, 56) }

// podSubnets6 is the first node's pod subnet in the range for benchmarks: a multiple of 256, so that the subnets of all nodes
// have a prefix in common that does not hold the underlay.
const podSubnets6 = 0x100

// benchmark4 is an address in 198.18.0.0/15 (RFC 2544), with a prefix length.
func benchmark4(second, third, host byte, bits int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{198, second, third, host}), bits)
}

// benchmark6 is an address in 2001:2::/48 (RFC 5180).
func benchmark6(subnet uint16, host byte) netip.Addr {
	return netip.AddrFrom16([16]byte{0: 0x20, 1: 0x01, 3: 0x02, 6: byte(subnet >> 8), 7: byte(subnet), 15: host})
}

// everywhere is the default route's destination.
func everywhere(f result.Family) netip.Prefix {
	return netip.PrefixFrom(byFamily(f, netip.IPv4Unspecified(), netip.IPv6Unspecified()), 0)
}

// alone is the prefix of one address.
func alone(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }

// linkLocal is the address that a device with this MAC has on its link, by the modified EUI-64 (RFC 4291, appendix A).
func linkLocal(m MAC) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom16([16]byte{
		0: 0xfe, 1: 0x80, 8: m[0] ^ 0x02, 9: m[1], 10: m[2], 11: 0xff, 12: 0xfe, 13: m[3], 14: m[4], 15: m[5],
	}), 64)
}
