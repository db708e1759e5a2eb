package server

import (
	"net"

	"github.com/vishvananda/netlink"

	"netdelta/result"
	"netdelta/testbed/nsmonitor"
)

// Report is what a server says of itself and of its card.
type Report struct {
	Host    string     `json:"host"`
	Kernel  string     `json:"kernel"`
	Arch    string     `json:"arch"`
	OS      string     `json:"os"`
	CPU     result.CPU `json:"cpu"`
	Virtual string     `json:"virtual,omitempty"`
	Clock   string     `json:"clock"`
	Card    CardReport `json:"card"`
	// Further are the cards that were named after Card, in that order.
	Further []CardReport `json:"further,omitempty"`
	Cards   []CardReport `json:"cards"`
	// Rights says what this user may not do that a node takes; "" where nothing is lacking. Networks are found out only where it is looked.
	Rights   string          `json:"rights,omitempty"`
	Networks []NetworkReport `json:"networks,omitempty"`
}

// Chosen are the cards that the node has, or has devices over.
func (r Report) Chosen() []CardReport { return append([]CardReport{r.Card}, r.Further...) }

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
	// Queues is how many queues it receives by, Interrupts the processors that its interrupts go to ("0,2-3"), and NUMA the node of memory
	// that it is at; "" where that is not known.
	Queues     int    `json:"queues,omitempty"`
	Interrupts string `json:"interrupts,omitempty"`
	NUMA       string `json:"numa,omitempty"`
	// Bond is how a card that is a bond shares what it sends among its links.
	Bond string `json:"bond,omitempty"`
	// Without are offloads that it does not do: it can't, or they are switched off.
	Without []string `json:"without,omitempty"`
}

// about is what a server says of a card of the calling thread's namespace.
func about(link netlink.Link) CardReport {
	a := link.Attrs()
	driver, speed := nsmonitor.Card(a.Name)
	c := CardReport{Name: a.Name, MAC: a.HardwareAddr.String(), Driver: driver, Speed: int64(speed), MTU: a.MTU, Up: a.Flags&net.FlagUp != 0, Functions: functionsOf(a.Name)}
	c.hardware("/", a)
	c.Without = without(a.Name)
	if b, is := link.(*netlink.Bond); is {
		c.Bond = b.Mode.String()
		if b.Mode == netlink.BOND_MODE_802_3AD || b.Mode == netlink.BOND_MODE_BALANCE_XOR { // the others share by no hash
			c.Bond += ", " + b.XmitHashPolicy.String()
		}
	}
	return c
}
