package network

import (
	"fmt"
	"net/netip"
	"strings"

	"netdelta/unit"
)

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

func (UDPTunnel) isOp() {}

// String renders the step.
func (o UDPTunnel) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "udp-tunnel %s (%s) local %s port %d mtu %d", o.Device, o.Role, o.Local, o.Port, int64(o.MTU))
	for _, p := range o.Peers {
		fmt.Fprintf(&b, ", %s by %s", p.Pods, p.Node)
	}
	return b.String()
}
