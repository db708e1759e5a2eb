package network

import (
	"fmt"

	"netdelta/unit"
)

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

func (Card) isOp()     {}
func (Function) isOp() {}

// String renders the step.
func (o Card) String() string {
	return fmt.Sprintf("card %s (%s) with %d virtual functions mtu %d", o.Device, o.Role, o.Functions, int64(o.MTU))
}

// String renders the step.
func (o Function) String() string {
	return fmt.Sprintf("virtual function %s %s (%s) number %d of %s mtu %d", o.Device, o.MAC, o.Role, o.Number, o.Card, int64(o.MTU))
}
