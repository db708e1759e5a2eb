package server

import (
	"net"

	"github.com/vishvananda/netlink"

	"netdelta/testbed/nsmonitor"
)

// Report is what a server says of itself and of its card.
type Report struct {
	Host     string       `json:"host"`
	Kernel   string       `json:"kernel"`
	Arch     string       `json:"arch"`
	OS       string       `json:"os"`
	Model    string       `json:"model"`
	CPUs     int          `json:"cpus"`
	Governor string       `json:"governor,omitempty"`
	Virtual  string       `json:"virtual,omitempty"`
	Clock    string       `json:"clock"`
	Card     CardReport   `json:"card"`
	Cards    []CardReport `json:"cards"`
	// Rights says what this user may not do that a node takes; "" where nothing is lacking. Networks are found out only where it is looked.
	Rights   string          `json:"rights,omitempty"`
	Networks []NetworkReport `json:"networks,omitempty"`
}

// NetworkReport says why a server lacks a network; Why is "" where it has it.
type NetworkReport struct {
	Name string `json:"name"`
	Why  string `json:"why,omitempty"`
}

// CardReport is what a server says of a card.
type CardReport struct {
	Name   string `json:"name"`
	MAC    string `json:"mac"`
	Driver string `json:"driver"`
	// Speed is in bits per second, 0 where it is not known.
	Speed int64 `json:"speed"`
	MTU   int   `json:"mtu"`
	// Addresses have the lengths of their networks.
	Addresses []string `json:"addresses,omitempty"`
	Up        bool     `json:"up"`
	// NoMacvlan and NoIPVlan say why no such device can be over it; "" where one can. They are found out only where it is looked.
	NoMacvlan string `json:"no_macvlan,omitempty"`
	NoIPVlan  string `json:"no_ipvlan,omitempty"`
	// NotTaken says why the card can't be taken; "" where it can.
	NotTaken string `json:"not_taken,omitempty"`
	// Functions is how many virtual functions the card can have.
	Functions int `json:"functions,omitempty"`
}

// about is what a server says of a card of the calling thread's namespace.
func about(link netlink.Link) CardReport {
	a := link.Attrs()
	driver, speed := nsmonitor.Card(a.Name)
	return CardReport{Name: a.Name, MAC: a.HardwareAddr.String(), Driver: driver, Speed: int64(speed), MTU: a.MTU, Up: a.Flags&net.FlagUp != 0, Functions: functionsOf(a.Name)}
}
