package network

import (
	"fmt"
	"net/netip"
	"strings"
)

// Redirection leads packets of one node from device to device by eBPF programs (tcx), past the node's IP stack: from a pod to
// another of the node by bpf_redirect_peer, to other nodes by bpf_redirect_neigh out of the port that the node's routes name,
// or into the tunnel with its far end as metadata, and from the port or the tunnel to a pod by bpf_redirect_peer. What the
// tables don't know goes to the stack.
type Redirection struct {
	In Space
	// Entry is the device where packets from other nodes come in: the underlay's port, or the tunnel.
	Entry string
	// Pods are those of the node.
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
	// NodeEnd is the name of the node's end of its veth, Gateway the MAC there; MAC is that of the pod.
	NodeEnd      string
	MAC, Gateway MAC
}

// FarPods are pods of another node.
type FarPods struct {
	Pods netip.Prefix
	Node netip.Addr
}

func (Redirection) isOp() {}

// String renders the step.
func (o Redirection) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: eBPF redirection, from other nodes at %s", o.In, o.Entry)
	if o.Tunnel {
		fmt.Fprintf(&b, ", to them through it with id %d", o.TunnelID)
	}
	for _, p := range o.Pods {
		fmt.Fprintf(&b, "\n  %s is %s behind %s (%s)", p.Address, p.MAC, p.NodeEnd, p.Gateway)
	}
	for _, f := range o.Far {
		fmt.Fprintf(&b, "\n  %s is at %s", f.Pods, f.Node)
	}
	return b.String()
}
