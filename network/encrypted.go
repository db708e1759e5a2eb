package network

import (
	"crypto/sha256"
	"fmt"

	"netdelta/result"
	"netdelta/unit"
)

// Encryption is what a plan does to packets between nodes so that nobody can read them on the way. Its keys are fixed test
// keys that follow from the numbers of the nodes: they protect nothing.
type Encryption struct {
	// Kind is the level of result.Conditions.Encryption, "" without encryption.
	Kind string
	// Wrap is the name of the outermost header by which encrypted packets are known: "wireguard", "esp".
	Wrap string
	// Reserve is what it leaves free of the underlay's MTU. Least and Most are what it adds to a packet: the last block of a
	// packet is filled up.
	Reserve, Least, Most unit.Bytes
	// tunnel says that ESP wraps whole packets in new ones, between the nodes.
	tunnel bool
}

// encryption is that of the network itself, or that of the topology's conditions.
func (n Network) encryption(t Topology) (Encryption, error) {
	kind := t.Conditions.Encryption
	if n.Encryption != "" {
		if kind != "" {
			return Encryption{}, n.notPossible(t, "it encrypts all packets between nodes itself")
		}
		kind = n.Encryption
	}
	switch kind {
	case "", result.None:
		return Encryption{}, nil
	case result.WireGuard, result.IPsec:
	default:
		return Encryption{}, fmt.Errorf("plan network %s: an encryption %q: need %s, %s or %s", n.Name, kind, result.None, result.WireGuard, result.IPsec)
	}
	crossing := n.Crossing
	if n.OnLinkUnderSwap && t.PodsOutlive {
		crossing = CrossOnLink
	}
	switch crossing {
	case CrossUnstated:
		return Encryption{}, n.notPossible(t, "nothing says which packets its nodes send to each other")
	case CrossPastStack:
		return Encryption{}, n.notPossible(t, "its programs send packets out past the node's IP stack, which is what would encrypt them")
	case CrossOnLink:
		return Encryption{}, n.notPossible(t, "its pods are themselves on the link between the nodes, where no node can encrypt for them")
	}
	if kind == result.IPsec && t.Family == result.IPv6 && n.NoESP6 != "" {
		return Encryption{}, n.notPossible(t, n.NoESP6)
	}
	if kind == result.WireGuard {
		return wireGuardOf(t.Family), nil
	}
	return espOf(t.Family, crossing == CrossByRoute, t.MTU), nil
}

// notPossible says why the network can't be encrypted.
func (n Network) notPossible(t Topology, why string) error {
	return &NotPossibleError{Network: n.Name, Condition: "encryption=" + t.Conditions.Encryption, Why: why}
}

// encrypt adds an encryption to a plan of the inner topology, and shows where packets of its paths are encrypted.
func (p Plan) encrypt(e Encryption, t Topology) Plan {
	p.Encryption = e
	if e.Kind == "" {
		return p
	}
	if e.Kind == result.IPsec {
		p.Ops = append(p.Ops, protections(p, t.wire(), e)...)
	}
	plain := p.path
	p.path = func(from, to int, protocol Protocol) []Hop {
		var hops []Hop
		for _, h := range plain(from, to, protocol) {
			hops = append(hops, e.hops(h, t)...)
		}
		return hops
	}
	return p
}

// hops are what a hop of the network's own becomes.
func (e Encryption) hops(h Hop, t Topology) []Hop {
	if !t.isWire(h) {
		return []Hop{h}
	}
	port := h
	port.Encapsulated, port.Encrypted = true, true
	if e.Kind != result.WireGuard {
		return []Hop{port}
	}
	port.Name = t.wire().Nodes[h.In.Index].Device
	h.Role = RoleEncapsulation
	if h.Sends {
		return []Hop{h, port}
	}
	return []Hop{port, h}
}

// testKey is a key that follows from what it is for. Whoever reads this can read what it protects.
func testKey(purpose string, nodes ...int) [sha256.Size]byte {
	return sha256.Sum256(fmt.Appendf(nil, "netdelta %s test key %v", purpose, nodes))
}
