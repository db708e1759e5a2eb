package network

import (
	"fmt"
	"net/netip"
	"strings"
)

// JoinSockets joins TCP sockets of pods on one node: what one sends arrives in the other's queue, past all devices. Programs
// in the control group of the pods' processes see each connection that comes about (sockops), and each message (sk_msg).
type JoinSockets struct {
	// Pods are the namespaces with the addresses whose connections among each other are joined: those of one node.
	Pods []JoinedPod
}

// JoinedPod is a pod whose sockets are joined.
type JoinedPod struct {
	In      Space
	Address netip.Addr
}

func (JoinSockets) isOp() {}

// String renders the step.
func (o JoinSockets) String() string {
	var b strings.Builder
	b.WriteString("TCP sockets joined by eBPF between")
	for _, p := range o.Pods {
		fmt.Fprintf(&b, "\n  %s in %s", p.Address, p.In)
	}
	return b.String()
}
