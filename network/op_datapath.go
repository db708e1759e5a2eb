package network

import (
	"fmt"
	"net/netip"
	"strings"

	"netdelta/result"
)

// Datapath makes a switch of the kernel's Open vSwitch module. It does what its flows say and drops all else; nobody is asked.
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

func (Datapath) isOp() {}

// String renders the step.
func (o Datapath) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "datapath %s of %s", o.Device, strings.Join(o.Ports, " "))
	for _, f := range o.Flows {
		fmt.Fprintf(&b, "\n  %s for %s from port %d to port %d", familyName(f.Family), f.To, f.In, f.Out)
		if t := f.Through; t != nil {
			fmt.Fprintf(&b, " with id %d from %s to %s", t.ID, t.Local, t.Remote)
		}
	}
	return b.String()
}
