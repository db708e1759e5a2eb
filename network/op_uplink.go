package network

import (
	"fmt"

	"netdelta/unit"
)

// Uplink gives a node a network card of the machine that it is on, in place of one end of a link between namespaces. The card gets
// the port's name, address and MTU. How it reaches the other nodes is for their machines to see to.
type Uplink struct {
	Device
	Role Role
	MAC  MAC
	MTU  unit.Bytes
}

func (Uplink) isOp() {}

// String says what the operation does.
func (u Uplink) String() string {
	return fmt.Sprintf("card %s, %s, MTU %d: %s", u.Device, u.MAC, int64(u.MTU), u.Role)
}
