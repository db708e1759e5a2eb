package network

import (
	"fmt"
	"net/netip"
	"strings"

	"netdelta/internal/gather"
	"netdelta/unit"
)

// Bond makes a device of several others in the same namespace, its links, which send and receive for it.
type Bond struct {
	Device
	Role Role
	MAC  MAC
	MTU  unit.Bytes
	// Mode is the bonding mode as the kernel names it ("802.3ad"); Hash is what it chooses a link by ("layer3+4"), "" in the
	// modes that don't choose by a hash.
	Mode, Hash string
	// Links are the names of the devices, in the order in which they join.
	Links []string
}

// String renders the step.
func (o Bond) String() string {
	s := fmt.Sprintf("bond %s %s (%s) of %s mode %s", o.Device, o.MAC, o.Role, strings.Join(o.Links, " "), o.Mode)
	if o.Hash != "" {
		s += " hash " + o.Hash
	}
	return fmt.Sprintf("%s mtu %d", s, int64(o.MTU))
}

// Members are the devices of the bond's links.
func (o Bond) Members() []Device {
	return gather.Each(o.Links, func(l string) Device { return Device{o.In, l} })
}

// Card gives a node a network card of the machine that nothing else uses, with as many virtual functions as the node has pods.
// The cards of all nodes must be on one link.
type Card struct {
	Device
	Role      Role
	MTU       unit.Bytes
	Functions int
}

// Function gives a pod one of the virtual functions of its node's card.
type Function struct {
	Device
	Role Role
	MAC  MAC
	// Card is the node's, and Number counts its functions from 0.
	Card   Device
	Number int
	MTU    unit.Bytes
}

// String renders the step.
func (o Card) String() string {
	return fmt.Sprintf("card %s (%s) with %d virtual functions mtu %d", o.Device, o.Role, o.Functions, int64(o.MTU))
}

// String renders the step.
func (o Function) String() string {
	return fmt.Sprintf("virtual function %s %s (%s) number %d of %s mtu %d", o.Device, o.MAC, o.Role, o.Number, o.Card, int64(o.MTU))
}

// Netkit makes a netkit pair, which lets packets pass in both directions. Only Primary can be configured later, and by it
// Peer.
type Netkit struct {
	Primary, Peer End
	// Layer is 2, where the devices have link addresses and ask for their neighbours', or 3, where they have none.
	Layer int
	MTU   unit.Bytes
}

// String renders the step.
func (o Netkit) String() string {
	if o.Layer == 3 {
		return fmt.Sprintf("netkit %s (%s) to %s (%s) layer 3 mtu %d", o.Primary.Device, o.Primary.Role, o.Peer.Device, o.Peer.Role, int64(o.MTU))
	}
	return fmt.Sprintf("netkit %s %s (%s) to %s %s (%s) layer %d mtu %d",
		o.Primary.Device, o.Primary.MAC, o.Primary.Role, o.Peer.Device, o.Peer.MAC, o.Peer.Role, o.Layer, int64(o.MTU))
}

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

// Protocol is the protocol of the wrapped packets.
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

// UDPTunnel makes a TUN device whose packets a process of the node carries to the other nodes, each as the payload of a UDP
// datagram: no header of its own stands between.
type UDPTunnel struct {
	Device
	Role Role
	// Local is the node's address, and Port the UDP port of the processes on all nodes.
	Local netip.Addr
	Port  uint16
	MTU   unit.Bytes
	Peers []TunnelPeer
}

// TunnelPeer is another node of a tunnel.
type TunnelPeer struct {
	// Pods are the addresses behind the node, Node is its own.
	Pods netip.Prefix
	Node netip.Addr
}

// String renders the step.
func (o UDPTunnel) String() string {
	text := fmt.Sprintf("udp-tunnel %s (%s) local %s port %d mtu %d", o.Device, o.Role, o.Local, o.Port, int64(o.MTU))
	for _, p := range o.Peers {
		text += fmt.Sprintf(", %s by %s", p.Pods, p.Node)
	}
	return text
}

// Uplink gives a node a network card of the machine that it is on, in place of one end of a link between namespaces. The card gets
// the port's name, address and MTU. How it reaches the other nodes is for their machines to see to.
type Uplink struct {
	Device
	Role Role
	MAC  MAC
	MTU  unit.Bytes
	// Number says which of the machine's cards it is, from 0: a bond has several.
	Number int
}

// String says what the operation does.
func (u Uplink) String() string {
	return fmt.Sprintf("card %d as %s, %s, MTU %d: %s", u.Number, u.Device, u.MAC, int64(u.MTU), u.Role)
}

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

// String renders the step, without keys.
func (o WireGuard) String() string {
	head := fmt.Sprintf("wireguard %s (%s) port %d mtu %d", o.Device, o.Role, o.Port, int64(o.MTU))
	return listed(head, o.Peers, func(p WireGuardPeer) string {
		return fmt.Sprintf("%s are behind %s", strings.Trim(fmt.Sprint(p.Allowed), "[]"), p.Endpoint)
	})
}

// String renders the step, without keys.
func (o Protect) String() string {
	mode := "transport"
	if o.Tunnel {
		mode = "tunnel"
	}
	head := fmt.Sprintf("%s: ESP in %s mode from %s to %s spi %#x, back %#x", o.In, mode, o.Local, o.Remote, o.Out.SPI, o.Incoming.SPI)
	return listed(head, o.Traffic, func(t Traffic) string {
		if t.Protocol != AnyProtocol {
			return fmt.Sprintf("%s to %s protocol %d", t.From, t.To, t.Protocol)
		}
		return fmt.Sprintf("%s to %s", t.From, t.To)
	})
}
