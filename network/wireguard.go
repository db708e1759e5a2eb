package network

import (
	"crypto/ecdh"
	"net/netip"

	"netdelta/result"
	"netdelta/unit"
)

const wireGuardDev = "wg0"

// macInner is the kind of MAC that an encrypting device would have: addresses of links are made of it.
const macInner byte = 0x10

// WireGuardPort is the UDP port at both ends: the one that its documentation takes.
const WireGuardPort = 51820

// wireGuardOverhead is what WireGuard reserves of a packet: the outer IP header, UDP (8), the header of its data messages (16)
// and the authentication tag (16). That makes 60 bytes over IPv4 and 80 over IPv6; see section 5.4.6 of its white paper.
func wireGuardOverhead(underlay result.Family) unit.Bytes { return ipHeader(underlay) + 8 + 16 + 16 }

// wireGuardOf is the encryption over an underlay. Packets are filled up to a multiple of 16 bytes, but not beyond the MTU of
// its device.
func wireGuardOf(underlay result.Family) Encryption {
	o := wireGuardOverhead(underlay)
	return Encryption{Kind: result.WireGuard, Wrap: "wireguard", Reserve: o, Least: o, Most: o + 15}
}

// wireguard routes pods' packets into an encrypting device.
func wireguard() Network {
	return Network{
		Name:              "wireguard",
		Summary:           "each pod is alone on a veth with its node as gateway; nodes route to each other's pods through WireGuard",
		UsedBy:            []string{"Calico with WireGuard", "Cilium with WireGuard", "Flannel WireGuard", "Kilo"},
		Overhead:          wireGuardOverhead,
		Crossing:          CrossByRoute,
		Encryption:        result.WireGuard,
		SameNodeUnderSwap: true,
		Build:             routedPlan,
	}
}

// wireGuard makes the encrypting device of each node: it takes what is for another node, or for its pods, to there.
func (d *draft) wireGuard() {
	wire := d.t.wire()
	for i, n := range wire.Nodes {
		port := Device{InNode(i), n.Device}
		d.address(port, mac(macPort, i), n.Address)
		w := WireGuard{Device: Device{InNode(i), wireGuardDev}, Role: RoleEncapsulation, Private: wireGuardKey(i), Port: WireGuardPort, MTU: d.t.MTU}
		for k, other := range wire.Nodes {
			if k == i {
				continue
			}
			w.Peers = append(w.Peers, WireGuardPeer{
				Public:   public(wireGuardKey(k)),
				Endpoint: netip.AddrPortFrom(other.Address.Addr(), WireGuardPort),
				Allowed:  []netip.Prefix{alone(d.t.Nodes[k].Address.Addr()), other.PodPrefix.Masked()},
			})
		}
		d.add(w)
	}
}

// portMAC is that of what a network takes for a node's port.
func (t Topology) portMAC(node int) MAC {
	if t.outer != nil && t.Nodes[node].Device == wireGuardDev {
		return mac(macInner, node)
	}
	return mac(macPort, node)
}

// wireGuardKey is the private key of a node.
func wireGuardKey(node int) [32]byte { return testKey("WireGuard", node) }

// public is the public key of a private one.
func public(private [32]byte) [32]byte {
	key, err := ecdh.X25519().NewPrivateKey(private[:])
	if err != nil {
		panic(err) // any 32 bytes are a private key
	}
	return [32]byte(key.PublicKey().Bytes())
}
