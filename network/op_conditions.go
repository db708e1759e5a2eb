package network

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"netdelta/result"
)

// Features switches offloads of all devices of a namespace, lo among them. A device that has a feature fixed keeps it.
type Features struct {
	In                 Space
	TSO, GSO, GRO, LRO result.Switch
}

// String renders the step.
func (o Features) String() string {
	s := o.In.String() + ": all devices:"
	for _, f := range o.Each() {
		s += " " + f.Name + " " + string(f.To)
	}
	return s
}

// Feature is an offload and the position that it is to be in.
type Feature struct {
	Name string // "tso"
	To   result.Switch
}

// Each lists the offloads that are to be switched.
func (o Features) Each() []Feature {
	var all []Feature
	// TSO and LRO rest on the others: they go last.
	for _, f := range []Feature{{"gso", o.GSO}, {"gro", o.GRO}, {"tso", o.TSO}, {"lro", o.LRO}} {
		if f.To != "" {
			all = append(all, f)
		}
	}
	return all
}

// Impair holds up what a device sends, and loses some of it, before it queues for the device's rate.
type Impair struct {
	Device
	// Delay is how much later each packet leaves.
	Delay time.Duration
	// Loss is the share of packets that don't, from 0 to 1. Each is as likely as the next. A train of segments that is cut up
	// behind the device counts as one packet.
	Loss float64
}

// String renders the step.
func (o Impair) String() string {
	s := o.Device.String() + ":"
	if o.Delay > 0 {
		s += fmt.Sprintf(" send %s later", o.Delay)
	}
	if o.Loss > 0 {
		s += " lose " + strconv.FormatFloat(100*o.Loss, 'g', 6, 64) + "%"
	}
	return s
}

// Steer has the packets that the devices of a namespace receive processed on all processors, by a hash of each packet's flow
// (receive packet steering), or on the one that received them.
type Steer struct {
	In Space
	To result.Switch
}

// String renders the step.
func (o Steer) String() string { return o.In.String() + ": all devices: rps " + string(o.To) }

// Attach has a pod attached to its node by plugins of the Container Network Interface (CNI): ADD when the network is built,
// then CHECK, and DEL before it is torn down.
type Attach struct {
	// Device is the one that the plugins are to make in the pod.
	Device
	Role Role
	// Node is where the plugins run.
	Node Space
	// File is where the list of plugins was read, and List the list with the node's values filled in.
	File, List string
	// Sum is the SHA-256 sum of the file, in hexadecimal digits.
	Sum string
	// Plugins are the types of the plugins, in their order, those that give addresses among them.
	Plugins []string
	// Address is the one that the plugins are asked for, with the length of the prefix of the node's pods. They may give
	// another, unless pods outlive the network.
	Address netip.Prefix
	// MAC and Ports are offered to plugins whose capabilities say that they take them ("mac", "portMappings").
	MAC                 MAC
	FirstPort, LastPort uint16
}

// String renders the step.
func (o Attach) String() string {
	return fmt.Sprintf("attach %s (%s) to %s by the plugins %s, asking for %s", o.Device, o.Role, o.Node, strings.Join(o.Plugins, ", "), o.Address)
}
