package network

import (
	"fmt"
	"net/netip"

	"netdelta/unit"
)

// TunnelKind is what a tunnel puts before packets.
type TunnelKind string

// The kinds of tunnels.
const (
	// IPIP is nothing but another IP header (RFC 2003; RFC 2473 for IPv6).
	IPIP TunnelKind = "ipip"
	// GRE has a header of its own behind that (RFC 2784, RFC 7676).
	GRE TunnelKind = "gre"
)

// Protocols of what tunnels make.
const (
	ProtocolIPIP  Protocol = 4
	ProtocolIPIP6 Protocol = 41 // IPv6 in IPv6
	ProtocolGRE   Protocol = 47
	ProtocolESP   Protocol = 50
)

// Tunnel makes a device that wraps IP packets of one version in IP packets of the same.
type Tunnel struct {
	Device
	Role Role
	Kind TunnelKind
	// Local and Remote are the ends. Without Remote the next hop of each packet's route is the far end.
	Local, Remote netip.Addr
	// Under is the device that carries the wrapped packets.
	Under Device
	MTU   unit.Bytes
}

// Protocol is that of the wrapped packets.
func (o Tunnel) Protocol() Protocol {
	switch {
	case o.Kind == GRE:
		return ProtocolGRE
	case o.Local.Is6():
		return ProtocolIPIP6
	}
	return ProtocolIPIP
}

// Geneve makes a Geneve device (RFC 8926) that leads to one other node, without options.
type Geneve struct {
	Device
	Role   Role
	MAC    MAC
	ID     uint32 // the network identifier, 24 bits
	Port   uint16 // the destination's UDP port
	Remote netip.Addr
	MTU    unit.Bytes
}

func (Tunnel) isOp() {}
func (Geneve) isOp() {}

// String renders the step.
func (o Tunnel) String() string {
	remote := "the next hop"
	if o.Remote.IsValid() {
		remote = o.Remote.String()
	}
	return fmt.Sprintf("%s %s (%s) over %s from %s to %s mtu %d", o.Kind, o.Device, o.Role, o.Under.Name, o.Local, remote, int64(o.MTU))
}

// String renders the step.
func (o Geneve) String() string {
	return fmt.Sprintf("geneve %s %s (%s) id %d port %d to %s mtu %d", o.Device, o.MAC, o.Role, o.ID, o.Port, o.Remote, int64(o.MTU))
}
