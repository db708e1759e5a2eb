package network

import (
	"fmt"
	"strings"

	"netdelta/unit"
)

// Bond makes a device of several others in the same namespace, its links, which send and receive for it.
type Bond struct {
	Device
	Role Role
	MAC  MAC
	MTU  unit.Bytes
	// Mode is the bonding mode as the kernel names it ("802.3ad"); Hash is what it chooses a link by ("layer3+4"), "" in the
	// modes that don't choose by a hash.
	Mode, Hash string
	// Links are the names of the devices, in the order in which they join.
	Links []string
}

func (Bond) isOp() {}

// String renders the step.
func (o Bond) String() string {
	s := fmt.Sprintf("bond %s %s (%s) of %s mode %s", o.Device, o.MAC, o.Role, strings.Join(o.Links, " "), o.Mode)
	if o.Hash != "" {
		s += " hash " + o.Hash
	}
	return fmt.Sprintf("%s mtu %d", s, int64(o.MTU))
}

// Members are the devices of the bond's links.
func (o Bond) Members() []Device {
	all := make([]Device, len(o.Links))
	for i, l := range o.Links {
		all[i] = Device{o.In, l}
	}
	return all
}
