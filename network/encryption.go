package network

import (
	"crypto/ecdh"
	"crypto/sha256"
	"fmt"
	"net/netip"

	"netdelta/internal/gather"
	"netdelta/result"
	"netdelta/unit"
)

const wireGuardDev = "wg0"

// macInner is the kind of MAC that an encrypting device would have: addresses of links are made of it.
const macInner byte = 0x10

// WireGuardPort is the UDP port at both ends: the one that its documentation uses.
const WireGuardPort = 51820

// What ESP with AES-GCM adds to a packet (RFC 4303, section 2; RFC 4106): its header and an explicit IV of 8 bytes each, the
// two bytes that end the padding, a tag of 16 bytes, and padding to a multiple of 4 bytes.
const (
	espLeast   = 8 + 8 + 2 + 16
	espPadding = 3
)

// Encryption is what a plan does to packets between nodes so that they can't be read on the way. Its keys are fixed test
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

// encryption is the network's own, or the one that the topology's conditions ask for.
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
	case CrossByRoute, CrossAsNodes, CrossByTunnel:
	default:
		return Encryption{}, fmt.Errorf("plan network %s: unknown crossing %d", n.Name, crossing)
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

// testKey is a key that follows from what it is for. Anybody who reads this can read what it protects.
func testKey(purpose string, nodes ...int) [sha256.Size]byte {
	return sha256.Sum256(fmt.Appendf(nil, "netdelta %s test key %v", purpose, nodes))
}

// wireGuardOverhead is what WireGuard reserves of a packet: the outer IP header, UDP (8), the header of its data messages (16)
// and the authentication tag (16). That makes 60 bytes over IPv4 and 80 over IPv6; see section 5.4.6 of its white paper.
func wireGuardOverhead(underlay result.Family) unit.Bytes { return ipHeader(underlay) + 8 + 16 + 16 }

// wireGuardOf is the encryption over an underlay. Packets are filled up to a multiple of 16 bytes, but not beyond the MTU of
// its device.
func wireGuardOf(underlay result.Family) Encryption {
	o := wireGuardOverhead(underlay)
	return Encryption{Kind: result.WireGuard, Wrap: "wireguard", Reserve: o, Least: o, Most: o + 15}
}

// wireGuard makes the encrypting device of each node: it takes what is for another node, or for its pods, to there.
func (d *draft) wireGuard() {
	wire := d.t.wire()
	for i, n := range wire.Nodes {
		d.address(Device{InNode(i), n.Device}, wire.wireMAC(i), n.Address)
		w := WireGuard{Device: Device{InNode(i), wireGuardDev}, Role: RoleEncapsulation, Private: testKey("WireGuard", i), Port: WireGuardPort, MTU: d.t.MTU}
		for k, other := range wire.others(i) {
			w.Peers = append(w.Peers, WireGuardPeer{
				Public:   public(testKey("WireGuard", k)),
				Endpoint: netip.AddrPortFrom(other.Address.Addr(), WireGuardPort),
				Allowed:  []netip.Prefix{alone(d.t.Nodes[k].Address.Addr()), other.PodPrefix.Masked()},
			})
		}
		d.add(w)
	}
}

// portMAC is the MAC of the device that a network takes for a node's port.
func (t Topology) portMAC(node int) MAC {
	if t.outer != nil && t.Nodes[node].Device == wireGuardDev {
		return mac(macInner, node)
	}
	return t.wireMAC(node)
}

// wireMAC is the MAC of a node's underlay port. Ports of different segments have different ones.
func (t Topology) wireMAC(node int) MAC { return t.segmentMAC(macPort, node) }

// linkMAC is the MAC of a link of a node's bond.
func (t Topology) linkMAC(node, link int) MAC { return t.segmentMAC(macLink+byte(link), node) }

func (t Topology) segmentMAC(kind byte, node int) MAC {
	m := mac(kind, node)
	m[4] = t.Segment // 0 until here: there are fewer nodes than a byte counts
	return m
}

// public is the public key of a private one.
func public(private [32]byte) [32]byte {
	key, err := ecdh.X25519().NewPrivateKey(private[:])
	if err != nil {
		panic(err) // any 32 bytes are a private key
	}
	return [32]byte(key.PublicKey().Bytes())
}

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

// ipsecOverhead is the least that ESP adds in tunnel mode: 54 bytes over IPv4 and 74 over IPv6.
func ipsecOverhead(underlay result.Family) unit.Bytes { return espLeast + ipHeader(underlay) }

// protections tells each node what to encrypt on the way to each other one. Neighbour discovery is never part of it: a node
// that has to encrypt its question for another's link address could not ask it.
func protections(p Plan, wire Topology, e Encryption) []Op {
	var ops []Op
	for i, n := range wire.Nodes {
		for k, other := range wire.others(i) {
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

// association is for packets from one node to another.
func association(from, to int) Association {
	key := testKey("IPsec", from, to)
	// Numbers below 256 are reserved (RFC 4303, section 2.1).
	return Association{SPI: 1<<16 | uint32(from)<<8 | uint32(to), Key: [20]byte(key[:20])}
}

// betweenNodes lists the protocols of the packets that nodes send to each other: the pods' own where there is no tunnel.
func (p Plan) betweenNodes() []Protocol {
	if m, wrapped := gather.First(p.Made(), func(m Made) bool { return m.Wraps != 0 }); wrapped {
		return []Protocol{m.Wraps}
	}
	return []Protocol{TCP, UDP}
}

// Crossing says how the packets of pods get from one node to another, which decides how they can be encrypted on the way.
type Crossing int

const (
	// CrossUnstated says nothing.
	CrossUnstated Crossing = iota
	// CrossOnLink leaves the frames of pods as they are: all pods are on the link that joins the nodes.
	CrossOnLink
	// CrossByRoute has nodes route the packets of their pods to each other.
	CrossByRoute
	// CrossAsNodes sends packets from one node's own address to another's.
	CrossAsNodes
	// CrossPastStack has programs send the packets of pods to other nodes, past the node's IP stack.
	CrossPastStack
	// CrossByTunnel wraps packets in such as go from one node's own address to another's.
	CrossByTunnel
)

// inner is a topology as the network over an encryption sees it: with what is left of the MTU, and, where encryption has
// a device of its own, with nodes that stand on that.
func (t Topology) inner(e Encryption) Topology {
	if e.Kind == "" {
		return t
	}
	outer := t
	t.outer = &outer
	t.MTU -= e.Reserve
	if e.Kind == result.WireGuard {
		t.Nodes = make([]Node, len(outer.Nodes))
		for i, n := range outer.Nodes {
			n.Device, n.Address = wireGuardDev, innerAddress(t.Family, i)
			t.Nodes[i] = n
		}
	}
	return t
}

// wire is the topology of the links between the nodes: this one, unless it is inside an encryption.
func (t Topology) wire() Topology {
	if t.outer != nil {
		return *t.outer
	}
	return t
}

// isWire tells whether a hop crosses what a network takes for the underlay's port of its node.
func (t Topology) isWire(h Hop) bool {
	return h.In.Kind == NodeSpace && h.In.Index < len(t.Nodes) && h.Name == t.Nodes[h.In.Index].Device && h.Role == RolePort
}

// Adds is how much a plan makes a packet longer that a device on its way sees, at least and at most: encryption fills up the
// last block of a packet.
func (p Plan) Adds(h Hop) (least, most unit.Bytes) { return p.Encryption.Adds(p.Overhead, h) }

// Adds is Plan.Adds, for a plan with this encryption and overhead.
func (e Encryption) Adds(overhead unit.Bytes, h Hop) (least, most unit.Bytes) {
	if !h.Encapsulated {
		return 0, 0
	}
	tunnel := overhead - e.Reserve
	if !h.Encrypted {
		return tunnel, tunnel
	}
	return tunnel + e.Least, tunnel + e.Most
}
