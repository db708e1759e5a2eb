package network

import (
	"fmt"
	"net/netip"
	"strings"

	"netdelta/unit"
)

// WireGuard makes a WireGuard device.
type WireGuard struct {
	Device
	Role    Role
	Private [32]byte
	Port    uint16 // its own UDP port
	Peers   []WireGuardPeer
	MTU     unit.Bytes
}

// WireGuardPeer is the other end of a WireGuard device.
type WireGuardPeer struct {
	Public   [32]byte
	Endpoint netip.AddrPort
	// Allowed are the addresses that are behind it.
	Allowed []netip.Prefix
}

// Protect encrypts packets from one node to another by ESP with AES-GCM, and expects those that come back to be encrypted.
type Protect struct {
	In Space
	// Local and Remote are the addresses of the nodes.
	Local, Remote netip.Addr
	// Tunnel puts whole packets into new ones between the nodes; otherwise what is behind their IP header is encrypted.
	Tunnel bool
	// Traffic is what is encrypted on the way to Remote; the same, turned round, is what comes back.
	Traffic       []Traffic
	Out, Incoming Association
}

func (WireGuard) isOp() {}
func (Protect) isOp()   {}

// String renders the step, without keys.
func (o WireGuard) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "wireguard %s (%s) port %d mtu %d", o.Device, o.Role, o.Port, int64(o.MTU))
	for _, p := range o.Peers {
		allowed := make([]string, len(p.Allowed))
		for i, a := range p.Allowed {
			allowed[i] = a.String()
		}
		fmt.Fprintf(&b, "\n  %s are behind %s", strings.Join(allowed, " "), p.Endpoint)
	}
	return b.String()
}

// String renders the step, without keys.
func (o Protect) String() string {
	var b strings.Builder
	mode := "transport"
	if o.Tunnel {
		mode = "tunnel"
	}
	fmt.Fprintf(&b, "%s: ESP in %s mode from %s to %s spi %#x, back %#x", o.In, mode, o.Local, o.Remote, o.Out.SPI, o.Incoming.SPI)
	for _, t := range o.Traffic {
		fmt.Fprintf(&b, "\n  %s to %s", t.From, t.To)
		if t.Protocol != 0 {
			fmt.Fprintf(&b, " protocol %d", t.Protocol)
		}
	}
	return b.String()
}
