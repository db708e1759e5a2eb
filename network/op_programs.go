package network

import (
	"fmt"
	"net/netip"
	"strings"
)

// Balance resolves virtual addresses in the namespace of a client by eBPF programs (tcx) at its device: what leaves for a
// virtual address goes to its backend, and what comes back from there comes from the virtual address. Ports stay.
type Balance struct {
	Device
	Services []VirtualAddress
}

// VirtualAddress is an address that no device has, and the one that stands behind it.
type VirtualAddress struct{ Virtual, Backend netip.Addr }

// String renders the step. Of a long table it shows the first entries.
func (o Balance) String() string {
	const shown = 4
	text := listed(fmt.Sprintf("%s: eBPF translation of %d virtual addresses", o.Device, len(o.Services)),
		o.Services[:min(shown, len(o.Services))], VirtualAddress.String)
	if len(o.Services) > shown {
		text += "\n  ..."
	}
	return text
}

// Guard lets packets in through devices of one namespace by an eBPF program (tcx) that looks their source address up in one
// table of prefixes. What serves IPv6 itself (RFC 4861) always passes, and so does what is not IP.
type Guard struct {
	In Space
	// Devices are those whose incoming packets are looked at.
	Devices []string
	// Entries are the table: of those that match, the longest prefix counts. A packet that matches none is dropped.
	Entries []GuardEntry
}

// GuardEntry is what becomes of packets from a range of addresses: Accept or Drop.
type GuardEntry struct {
	From netip.Prefix
	Do   Verdict
}

// String renders the step. Of a long table it shows the last entries, those that something may match.
func (o Guard) String() string {
	const shown = 4
	head := fmt.Sprintf("%s: eBPF guard on what comes in through %s, %d entries", o.In, strings.Join(o.Devices, ", "), len(o.Entries))
	from := max(0, len(o.Entries)-shown)
	if from > 0 {
		head += ", the last"
	}
	return listed(head, o.Entries[from:], func(e GuardEntry) string {
		if e.Do == Drop {
			return e.From.String() + " drop"
		}
		return e.From.String() + " accept"
	})
}

// Redirection leads packets of one node from device to device by eBPF programs (tcx), past the node's IP stack: from a pod to
// another of the node by bpf_redirect_peer, to other nodes by bpf_redirect_neigh out of the port that the node's routes name,
// or into the tunnel with its far end as metadata, and from the port or the tunnel to a pod by bpf_redirect_peer. What the
// tables don't know goes to the stack.
type Redirection struct {
	In Space
	// Entry is the device where packets from other nodes come in: the underlay's port, or the tunnel.
	Entry string
	// Pods are the node's.
	Pods []RedirectedPod
	// Tunnel says that packets for other nodes are encapsulated: Entry takes each packet's far end from its metadata, and
	// TunnelID is the number of the network in it. Near is the near end; Far are the ranges of other nodes' pods with the far
	// ends.
	Tunnel   bool
	TunnelID uint32
	Near     netip.Addr
	Far      []FarPods
}

// RedirectedPod is a pod whose packets are redirected.
type RedirectedPod struct {
	Address netip.Addr
	Device  Device // the pod's own
	// NodeEnd is the name of the node's end of its veth, Gateway the MAC there; MAC is the pod's.
	NodeEnd      string
	MAC, Gateway MAC
}

// FarPods are pods of another node.
type FarPods struct {
	Pods netip.Prefix
	Node netip.Addr
}

// String renders the step.
func (o Redirection) String() string {
	text := fmt.Sprintf("%s: eBPF redirection, from other nodes at %s", o.In, o.Entry)
	if o.Tunnel {
		text += fmt.Sprintf(", to them through it with id %d", o.TunnelID)
	}
	text = listed(text, o.Pods, func(p RedirectedPod) string {
		return fmt.Sprintf("%s is %s behind %s (%s)", p.Address, p.MAC, p.NodeEnd, p.Gateway)
	})
	return listed(text, o.Far, func(f FarPods) string { return fmt.Sprintf("%s is at %s", f.Pods, f.Node) })
}

// JoinSockets joins TCP sockets of pods on one node: what one sends arrives in the other's queue, past all devices. Programs
// in the control group of the pods' processes see each connection that comes about (sockops), and each message (sk_msg).
type JoinSockets struct {
	Pods []JoinedPod
}

// JoinedPod is a pod whose sockets are joined to sockets of other pods of its node.
type JoinedPod struct {
	Address netip.Addr
	Node    int
}

// String renders the step.
func (o JoinSockets) String() string {
	return listed("TCP sockets joined by eBPF within nodes", o.Pods, func(p JoinedPod) string {
		return fmt.Sprintf("%s on %s", p.Address, InNode(p.Node))
	})
}

// XDPRedirection leads packets of one node from device to device by eBPF programs in the drivers' receive path (XDP in native
// mode), before a socket buffer is made. Devices that send for others to receive by XDP leave neither checksums nor
// segmentation to the receiver, and each receiver has a program too, without which it takes no redirected packet.
type XDPRedirection struct {
	In Space
	// Port is where packets from and to other nodes pass, with PortMAC; PortPeer is its other end.
	Port     string
	PortMAC  MAC
	PortPeer Device
	Pods     []RedirectedPod
	// Far are the pods of other nodes, with the MAC of the port of their node.
	Far []XDPFar
}

// XDPFar is a pod of another node.
type XDPFar struct {
	Address netip.Addr
	Port    MAC
}

// String renders the step.
func (o XDPRedirection) String() string {
	text := fmt.Sprintf("%s: XDP redirection, to and from other nodes through %s (%s) to %s", o.In, o.Port, o.PortMAC, o.PortPeer)
	text = listed(text, o.Pods, func(p RedirectedPod) string {
		return fmt.Sprintf("%s is %s (%s) behind %s (%s)", p.Address, p.Device, p.MAC, p.NodeEnd, p.Gateway)
	})
	return listed(text, o.Far, func(f XDPFar) string { return fmt.Sprintf("%s is at %s", f.Address, f.Port) })
}
