package network

import (
	"fmt"
	"net/netip"
	"strings"
)

// JoinSockets joins TCP sockets of pods on one node: what one sends arrives in the other's queue, past all devices. Programs
// in the control group of the pods' processes see each connection that comes about (sockops), and each message (sk_msg).
type JoinSockets struct {
	Pods []JoinedPod
}

// JoinedPod is a pod whose sockets are joined to those of other pods of its node.
type JoinedPod struct {
	Address netip.Addr
	Node    int
}

func (JoinSockets) isOp() {}

// String renders the step.
func (o JoinSockets) String() string {
	var b strings.Builder
	b.WriteString("TCP sockets joined by eBPF within nodes")
	for _, p := range o.Pods {
		fmt.Fprintf(&b, "\n  %s on %s", p.Address, InNode(p.Node))
	}
	return b.String()
}
