package network

import (
	"fmt"
	"net/netip"
	"strings"
)

// XDPRedirection leads packets of one node from device to device by eBPF programs in the drivers' receive path (XDP in native
// mode), before a socket buffer is made. Devices that send for others to receive by XDP leave neither checksums nor
// segmentation to the receiver, and each receiver has a program too, without which it takes no redirected packet.
type XDPRedirection struct {
	In Space
	// Port is where packets from and to other nodes pass, with PortMAC; PortPeer is its other end.
	Port     string
	PortMAC  MAC
	PortPeer Device
	Pods     []XDPPod
	// Far are the pods of other nodes, with the MAC of the port of their node.
	Far []XDPFar
}

// XDPPod is a pod whose packets are redirected.
type XDPPod struct {
	Address netip.Addr
	Device  Device // the pod's own
	NodeEnd string
	// MAC is that of the pod, Gateway that of the node's end.
	MAC, Gateway MAC
}

// XDPFar is a pod of another node.
type XDPFar struct {
	Address netip.Addr
	Port    MAC
}

func (XDPRedirection) isOp() {}

// String renders the step.
func (o XDPRedirection) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: XDP redirection, to and from other nodes through %s (%s) to %s", o.In, o.Port, o.PortMAC, o.PortPeer)
	for _, p := range o.Pods {
		fmt.Fprintf(&b, "\n  %s is %s (%s) behind %s (%s)", p.Address, p.Device, p.MAC, p.NodeEnd, p.Gateway)
	}
	for _, f := range o.Far {
		fmt.Fprintf(&b, "\n  %s is at %s", f.Address, f.Port)
	}
	return b.String()
}
