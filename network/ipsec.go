package network

import (
	"net/netip"

	"netdelta/result"
	"netdelta/unit"
)

// What ESP with AES-GCM adds to a packet (RFC 4303, section 2; RFC 4106): its header and an explicit IV of 8 bytes each, the
// two bytes that end the padding, a tag of 16 bytes, and padding to a multiple of 4 bytes.
const (
	espLeast   = 8 + 8 + 2 + 16
	espPadding = 3
)

// espOf is the encryption over an underlay of an MTU: whole packets of pods in new ones, or what is behind the IP header of
// packets between nodes. What is encrypted, with the two bytes, fills up blocks of 4 bytes, behind an IP header in either case.
func espOf(underlay result.Family, tunnel bool, mtu unit.Bytes) Encryption {
	const block = espPadding + 1
	least := unit.Bytes(espLeast)
	if tunnel {
		least += ipHeader(underlay)
	}
	unused := (mtu - ipHeader(underlay) - espLeast + 2) % block
	return Encryption{Kind: result.IPsec, Wrap: "esp", Reserve: least + unused, Least: least, Most: least + espPadding, tunnel: tunnel}
}

// ipsecOverhead is what ESP in tunnel mode adds at least: 54 bytes over IPv4 and 74 over IPv6.
func ipsecOverhead(underlay result.Family) unit.Bytes { return espLeast + ipHeader(underlay) }

// ipsec has nodes encrypt what they route to each other's pods.
func ipsec() Network {
	return Network{
		Name:              "ipsec",
		Summary:           "each pod is alone on a veth with its node as gateway; nodes route to each other's pods through ESP tunnels with AES-GCM",
		UsedBy:            []string{"Cilium with IPsec", "Antrea with IPsec", "Weave Net encryption", "Flannel IPsec"},
		Overhead:          ipsecOverhead,
		Crossing:          CrossByRoute,
		Encryption:        result.IPsec,
		SameNodeUnderSwap: true,
		Build:             routedPlan,
	}
}

// protections tells each node what to encrypt on the way to each other one. Neighbour discovery is never part of it: a node
// that has to encrypt its question for another's link address could not ask it.
func protections(p Plan, wire Topology, e Encryption) []Op {
	var ops []Op
	for i, n := range wire.Nodes {
		for k, other := range wire.Nodes {
			if k == i {
				continue
			}
			o := Protect{
				In: InNode(i), Local: n.Address.Addr(), Remote: other.Address.Addr(), Tunnel: e.tunnel,
				Out: association(i, k), Incoming: association(k, i),
			}
			if e.tunnel {
				o.Traffic = []Traffic{{From: n.PodPrefix.Masked(), To: other.PodPrefix.Masked()}}
			} else {
				for _, protocol := range p.betweenNodes() {
					o.Traffic = append(o.Traffic, Traffic{From: alone(o.Local), To: alone(o.Remote), Protocol: protocol})
				}
			}
			ops = append(ops, o)
		}
	}
	return ops
}

// association is that of packets from one node to another.
func association(from, to int) Association {
	key := testKey("IPsec", from, to)
	// Numbers below 256 are reserved (RFC 4303, section 2.1).
	return Association{SPI: 1<<16 | uint32(from)<<8 | uint32(to), Key: [20]byte(key[:20])}
}

// betweenNodes lists the protocols of the packets that nodes send to each other: those of the pods where there is no tunnel.
func (p Plan) betweenNodes() []Protocol {
	var found []Protocol
	for _, op := range p.Ops {
		switch op := op.(type) {
		case Vxlan, Geneve, UDPTunnel:
			return []Protocol{UDP}
		case Tunnel:
			return []Protocol{op.Protocol()}
		case Address: // a plan without any tunnel
			found = []Protocol{TCP, UDP}
		}
	}
	return found
}

// Association is an IPsec security association.
type Association struct {
	SPI uint32
	// Key is one of AES-128-GCM, with 4 bytes of salt at its end.
	Key [20]byte
}

// Traffic selects the packets that an encryption is for. Protocol 0 is any.
type Traffic struct {
	From, To netip.Prefix
	Protocol Protocol
}
