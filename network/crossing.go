package network

import (
	"netdelta/result"
	"netdelta/unit"
)

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
