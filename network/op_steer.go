package network

import "netdelta/result"

// Steer has the packets that the devices of a namespace receive processed on all processors, by a hash of each packet's flow
// (receive packet steering), or on the one that received them.
type Steer struct {
	In Space
	To result.Switch
}

func (Steer) isOp() {}

// String renders the step.
func (o Steer) String() string { return o.In.String() + ": all devices: rps " + string(o.To) }
