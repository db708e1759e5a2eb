package network

import (
	"fmt"

	"netdelta/unit"
)

// Netkit makes a netkit pair, which lets packets pass in both directions. Only Primary can be configured later, and by it
// Peer.
type Netkit struct {
	Primary, Peer End
	// Layer is 2, where the devices have link addresses and ask for their neighbours', or 3, where they have none.
	Layer int
	MTU   unit.Bytes
}

func (Netkit) isOp() {}

// String renders the step.
func (o Netkit) String() string {
	if o.Layer == 3 {
		return fmt.Sprintf("netkit %s (%s) to %s (%s) layer 3 mtu %d", o.Primary.Device, o.Primary.Role, o.Peer.Device, o.Peer.Role, int64(o.MTU))
	}
	return fmt.Sprintf("netkit %s %s (%s) to %s %s (%s) layer %d mtu %d",
		o.Primary.Device, o.Primary.MAC, o.Primary.Role, o.Peer.Device, o.Peer.MAC, o.Peer.Role, o.Layer, int64(o.MTU))
}
