package network

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"netdelta/result"
	"netdelta/unit"
)

// Op is one step of a plan. The set is closed: need.go and made.go list all of them. Devices come up when they are made; lo is up from the start.
type Op interface {
	fmt.Stringer
	// need is what the kernel must have for the operation, needNothing for what every kernel with namespaces has.
	need() Need
	// makes are the devices that the operation makes; nil for one that makes none.
	makes() []Made
}

// Of lists those operations that are of one type.
func Of[T Op](ops []Op) []T {
	var found []T
	for _, op := range ops {
		if o, is := op.(T); is {
			found = append(found, o)
		}
	}
	return found
}

// MAC is the address of a device, in the form that fits a constant or a map's key.
type MAC [6]byte

// String is the usual notation.
func (m MAC) String() string { return net.HardwareAddr(m[:]).String() }

// Sysctl writes a kernel setting of one namespace.
type Sysctl struct {
	In Space
	// Name is the path below /proc/sys, with dots or slashes: slashes where a device's name may hold a dot.
	Name, Value string
	// Optional says that a kernel without the setting needs nothing here.
	Optional bool
}

// End is one end of a veth pair.
type End struct {
	Device
	Role Role
	MAC  MAC
}

// Veth makes a pair of joined devices.
type Veth struct {
	A, B End
	MTU  unit.Bytes
}

// Bridge makes a bridge that neither runs the spanning tree protocol nor snoops multicast.
type Bridge struct {
	Device
	Role Role
	MAC  MAC
	MTU  unit.Bytes
}

// Macvlan makes a macvlan device in bridge mode over Parent, in another namespace.
type Macvlan struct {
	Device
	Role   Role
	MAC    MAC
	Parent Device
	MTU    unit.Bytes
}

// IPVlan makes an ipvlan device over Parent, in another namespace. It has its parent's MAC.
type IPVlan struct {
	Device
	Role   Role
	Parent Device
	// Layer is 2, where the device takes part in ARP, or 3, where it only routes.
	Layer int
	MTU   unit.Bytes
}

// Vxlan makes a VXLAN device (RFC 7348).
type Vxlan struct {
	Device
	Role  Role
	MAC   MAC
	ID    uint32 // the network identifier, 24 bits
	Port  uint16 // the destination's UDP port
	Local netip.Addr
	// Under is the device that carries the encapsulated packets.
	Under Device
	// Learning lets the device learn which remote node holds which MAC.
	Learning bool
	// External says that what sends through the device tells it the identifier and the far end of each packet.
	External bool
	MTU      unit.Bytes
}

// Enslave makes a device a port of a bridge in the same namespace.
type Enslave struct {
	Device
	Bridge string
}

// Shape limits what a device sends.
type Shape struct {
	Device
	Rate unit.BitsPerSecond
	// Impaired says that the device has an Impair, behind which packets queue for the rate.
	Impaired bool
}

// Address gives an address to a device. With its first address of IPv6 the device begins to speak IPv6.
type Address struct {
	Device
	Prefix netip.Prefix
}

// Route adds a route through a device.
type Route struct {
	Device
	To netip.Prefix
	// Via is the next hop; without it the destination is on the link.
	Via netip.Addr
	// OnLink takes the next hop to be on the link though no address says so.
	OnLink bool
}

// Neighbour adds a permanent entry to the table of neighbours.
type Neighbour struct {
	Device
	Address netip.Addr
	MAC     MAC
}

// Forward adds an entry to a VXLAN device's forwarding table: frames for MAC go to the node To. A zero MAC stands for
// frames whose destination is unknown or many; several such entries flood.
type Forward struct {
	Device
	MAC MAC
	To  netip.Addr
}

// String renders the step.
func (o Sysctl) String() string {
	s := fmt.Sprintf("%s: sysctl %s = %s", o.In, o.Name, o.Value)
	if o.Optional {
		s += " (if there)"
	}
	return s
}

// String renders the step.
func (o Veth) String() string {
	return fmt.Sprintf("veth %s %s (%s) to %s %s (%s) mtu %d", o.A.Device, o.A.MAC, o.A.Role, o.B.Device, o.B.MAC, o.B.Role, int64(o.MTU))
}

// String renders the step.
func (o Bridge) String() string {
	return fmt.Sprintf("bridge %s %s (%s) mtu %d", o.Device, o.MAC, o.Role, int64(o.MTU))
}

// String renders the step.
func (o Macvlan) String() string {
	return fmt.Sprintf("macvlan %s %s (%s) over %s mtu %d", o.Device, o.MAC, o.Role, o.Parent, int64(o.MTU))
}

// String renders the step.
func (o IPVlan) String() string {
	return fmt.Sprintf("ipvlan %s (%s) over %s layer %d mtu %d", o.Device, o.Role, o.Parent, o.Layer, int64(o.MTU))
}

// String renders the step.
func (o Vxlan) String() string {
	id, learning := fmt.Sprintf("id %d", o.ID), " nolearning"
	switch {
	case o.External:
		id, learning = "external", ""
	case o.Learning:
		learning = " learning"
	}
	return fmt.Sprintf("vxlan %s %s (%s) over %s %s port %d local %s%s mtu %d",
		o.Device, o.MAC, o.Role, o.Under.Name, id, o.Port, o.Local, learning, int64(o.MTU))
}

// String renders the step.
func (o Enslave) String() string { return fmt.Sprintf("%s: port of %s", o.Device, o.Bridge) }

// String renders the step.
func (o Shape) String() string {
	return fmt.Sprintf("%s: send at most %d bit/s", o.Device, int64(o.Rate))
}

// String renders the step.
func (o Address) String() string { return fmt.Sprintf("%s: address %s", o.Device, o.Prefix) }

// String renders the step.
func (o Route) String() string {
	s := fmt.Sprintf("%s: route %s", o.Device, o.To)
	if o.Via.IsValid() {
		s += " via " + o.Via.String()
	}
	if o.OnLink {
		s += " onlink"
	}
	return s
}

// String renders the step.
func (o Neighbour) String() string {
	return fmt.Sprintf("%s: neighbour %s is %s", o.Device, o.Address, o.MAC)
}

// String renders the step.
func (o Forward) String() string { return fmt.Sprintf("%s: forward %s to %s", o.Device, o.MAC, o.To) }

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
