package network

import (
	"fmt"
	"net/netip"
	"strings"

	"netdelta/result"
)

// IPTables hands a table to iptables-restore in one namespace. What the table held before is gone.
type IPTables struct {
	In Space
	// Family is the family of the packets that pass the table; "" is IPv4.
	Family result.Family
	// Table is "filter" or "nat".
	Table string
	// Lines are in the form of iptables-save: chains (":INPUT DROP [0:0]"), then rules ("-A INPUT -s 198.19.0.0/16 -j ACCEPT").
	Lines []Line
}

// Line is a line of a table.
type Line string

// String is the line.
func (l Line) String() string { return string(l) }

// Program is the one that takes the table.
func (o IPTables) Program() string {
	return byFamily(o.Family, "iptables-restore", "ip6tables-restore")
}

// Text is what the program reads.
func (o IPTables) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%s\n", o.Table)
	for _, l := range o.Lines {
		fmt.Fprintln(&b, l)
	}
	b.WriteString("COMMIT\n")
	return b.String()
}

// Cleared is the operation that leaves nothing in the table.
func (o IPTables) Cleared() IPTables {
	hooked := map[string][]Line{
		"filter": {":INPUT ACCEPT [0:0]", ":FORWARD ACCEPT [0:0]", ":OUTPUT ACCEPT [0:0]"},
		"nat":    {":PREROUTING ACCEPT [0:0]", ":INPUT ACCEPT [0:0]", ":OUTPUT ACCEPT [0:0]", ":POSTROUTING ACCEPT [0:0]"},
	}
	o.Lines = hooked[o.Table]
	return o
}

// String renders the table. Of a long one it shows the ends.
func (o IPTables) String() string {
	return fmt.Sprintf("%s: %s: *%s\n  %s\n  COMMIT", o.In, o.Program(), o.Table, strings.Join(ends(o.Lines), "\n  "))
}

// LocalRoute has a namespace take an address that no device has for its own.
type LocalRoute struct {
	In Space
	To netip.Addr
	// From is what packets to the address come from, unless their sender says otherwise.
	From netip.Addr
}

// String renders the step.
func (o LocalRoute) String() string {
	return fmt.Sprintf("%s: route local %s from %s", o.In, o.To, o.From)
}

// ServiceMap resolves virtual addresses by an nftables table in the namespace of a client: one look into a map leads to the
// chain of the service, which translates the destination. Ports stay.
type ServiceMap struct {
	In       Space
	Family   result.Family
	Services []VirtualAddress
}

// IPVS resolves virtual addresses in the namespace of a client by the kernel's load balancer, with address translation: two
// services for each address, of TCP and UDP, each for all ports. Ports stay.
type IPVS struct {
	In       Space
	Family   result.Family
	Services []VirtualAddress
}

// String is the address and what stands behind it.
func (v VirtualAddress) String() string { return v.Virtual.String() + " to " + v.Backend.String() }

// String renders the step. Of a long table it shows the ends.
func (o ServiceMap) String() string {
	return fmt.Sprintf("%s: nftables map of %d services\n  %s", o.In, len(o.Services), strings.Join(ends(o.Services), "\n  "))
}

// String renders the step. Of a long table it shows the ends.
func (o IPVS) String() string {
	return fmt.Sprintf("%s: IPVS with %d services\n  %s", o.In, len(o.Services), strings.Join(ends(o.Services), "\n  "))
}

// Datapath makes a switch of the kernel's Open vSwitch module. It does what its flows say and drops all else, without an upcall.
type Datapath struct {
	// Device is the switch's own, port 0, which stays down.
	Device
	// Ports are the names of the devices that become port 1 and up.
	Ports []string
	Flows []Flow
}

// Flow is what a datapath does with frames.
type Flow struct {
	// In is the port that they come in by, To their destination, and Family the version of IP that is in them.
	In     int
	To     MAC
	Family result.Family
	// Out is the port that they leave by, Through where to a tunnel behind it takes them; nil without one.
	Out     int
	Through *Encapsulate
}

// Encapsulate is what a tunnel has to know of a frame.
type Encapsulate struct {
	ID            uint32
	Local, Remote netip.Addr
}

// String renders the step.
func (o Datapath) String() string {
	return listed(fmt.Sprintf("datapath %s of %s", o.Device, strings.Join(o.Ports, " ")), o.Flows, func(f Flow) string {
		line := fmt.Sprintf("%s for %s from port %d to port %d", familyName(f.Family), f.To, f.In, f.Out)
		if t := f.Through; t != nil {
			line += fmt.Sprintf(" with id %d from %s to %s", t.ID, t.Local, t.Remote)
		}
		return line
	})
}

// listed renders a head and, below it, a line for each member of a list.
func listed[T any](head string, list []T, line func(T) string) string {
	for _, v := range list {
		head += "\n  " + line(v)
	}
	return head
}

// What is shown of a long list: as much as shows its form, and what comes last, which is often what differs.
const (
	shownFirst = 3
	shownLast  = 6
	shownAll   = 20
)

// ends renders a list, a line each; of a long one the first and the last lines, and how many there are between them.
func ends[T fmt.Stringer](list []T) []string {
	var lines []string
	for k, v := range list {
		switch {
		case len(list) <= shownAll || k < shownFirst || k >= len(list)-shownLast:
			lines = append(lines, v.String())
		case k == shownFirst:
			lines = append(lines, fmt.Sprintf("# and %d more", len(list)-shownFirst-shownLast))
		}
	}
	return lines
}

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
