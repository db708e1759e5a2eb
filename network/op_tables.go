package network

import (
	"fmt"
	"net/netip"
	"strings"

	"netdelta/result"
)

// IPTables hands a table to iptables-restore in one namespace. What the table held before is gone.
type IPTables struct {
	In Space
	// Family is the family of the packets that pass the table; "" is IPv4.
	Family result.Family
	// Table is "filter" or "nat".
	Table string
	// Lines are in the form of iptables-save: chains (":INPUT DROP [0:0]"), then rules ("-A INPUT -s 198.19.0.0/16 -j ACCEPT").
	Lines []Line
}

// Line is a line of a table.
type Line string

// String is the line.
func (l Line) String() string { return string(l) }

// Program is the one that takes the table.
func (o IPTables) Program() string {
	return byFamily(o.Family, "iptables-restore", "ip6tables-restore")
}

// Text is what the program reads.
func (o IPTables) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%s\n", o.Table)
	for _, l := range o.Lines {
		fmt.Fprintln(&b, l)
	}
	b.WriteString("COMMIT\n")
	return b.String()
}

// Cleared is the operation that leaves nothing in the table.
func (o IPTables) Cleared() IPTables {
	hooked := map[string][]Line{
		"filter": {":INPUT ACCEPT [0:0]", ":FORWARD ACCEPT [0:0]", ":OUTPUT ACCEPT [0:0]"},
		"nat":    {":PREROUTING ACCEPT [0:0]", ":INPUT ACCEPT [0:0]", ":OUTPUT ACCEPT [0:0]", ":POSTROUTING ACCEPT [0:0]"},
	}
	o.Lines = hooked[o.Table]
	return o
}

// String renders the table. Of a long one it shows the ends.
func (o IPTables) String() string {
	return fmt.Sprintf("%s: %s: *%s\n  %s\n  COMMIT", o.In, o.Program(), o.Table, strings.Join(ends(o.Lines), "\n  "))
}

// LocalRoute has a namespace take an address that no device has for its own.
type LocalRoute struct {
	In Space
	To netip.Addr
	// From is what packets to the address come from, unless their sender says otherwise.
	From netip.Addr
}

// String renders the step.
func (o LocalRoute) String() string {
	return fmt.Sprintf("%s: route local %s from %s", o.In, o.To, o.From)
}

// ServiceMap resolves virtual addresses by an nftables table in the namespace of a client: one look into a map leads to the
// chain of the service, which translates the destination. Ports stay.
type ServiceMap struct {
	In       Space
	Family   result.Family
	Services []VirtualAddress
}

// IPVS resolves virtual addresses in the namespace of a client by the kernel's load balancer, with address translation: two
// services for each address, of TCP and UDP, each for all ports. Ports stay.
type IPVS struct {
	In       Space
	Family   result.Family
	Services []VirtualAddress
}

// String is the address and what stands behind it.
func (v VirtualAddress) String() string { return v.Virtual.String() + " to " + v.Backend.String() }

// String renders the step. Of a long table it shows the ends.
func (o ServiceMap) String() string {
	return fmt.Sprintf("%s: nftables map of %d services\n  %s", o.In, len(o.Services), strings.Join(ends(o.Services), "\n  "))
}

// String renders the step. Of a long table it shows the ends.
func (o IPVS) String() string {
	return fmt.Sprintf("%s: IPVS with %d services\n  %s", o.In, len(o.Services), strings.Join(ends(o.Services), "\n  "))
}

// Datapath makes a switch of the kernel's Open vSwitch module. It does what its flows say and drops all else, without an upcall.
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

// String renders the step.
func (o Datapath) String() string {
	return listed(fmt.Sprintf("datapath %s of %s", o.Device, strings.Join(o.Ports, " ")), o.Flows, func(f Flow) string {
		line := fmt.Sprintf("%s for %s from port %d to port %d", familyName(f.Family), f.To, f.In, f.Out)
		if t := f.Through; t != nil {
			line += fmt.Sprintf(" with id %d from %s to %s", t.ID, t.Local, t.Remote)
		}
		return line
	})
}

// listed renders a head and, below it, a line for each member of a list.
func listed[T any](head string, list []T, line func(T) string) string {
	for _, v := range list {
		head += "\n  " + line(v)
	}
	return head
}

// What is shown of a long list: as much as shows its form, and what comes last, which is often what differs.
const (
	shownFirst = 3
	shownLast  = 6
	shownAll   = 20
)

// ends renders a list, a line each; of a long one the first and the last lines, and how many there are between them.
func ends[T fmt.Stringer](list []T) []string {
	var lines []string
	for k, v := range list {
		switch {
		case len(list) <= shownAll || k < shownFirst || k >= len(list)-shownLast:
			lines = append(lines, v.String())
		case k == shownFirst:
			lines = append(lines, fmt.Sprintf("# and %d more", len(list)-shownFirst-shownLast))
		}
	}
	return lines
}
