package server

import (
	"cmp"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"

	"netdelta/internal/machine"
	"netdelta/result"
	"netdelta/testbed/lab"
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

// without are the offloads that a card of the calling thread's namespace does not do. Large receive offload is not missed: the kernel
// switches it off where it forwards.
func without(card string) (names []string) {
	offloads, err := lab.Offloads(card)
	if err != nil {
		return nil
	}
	for name, on := range offloads {
		if !on && name != "lro" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// hardware adds to a report how a card hands packets to processors: the queues that it uses, the processors that its interrupts go to, and the node of
// memory that it is at. root is "/" but in tests.
func (c *CardReport) hardware(root string, a *netlink.LinkAttrs) {
	c.Queues = a.NumRxQueues
	files := filepath.Join(root, "sys/class/net", a.Name)
	if machine.Fact(filepath.Join(files, "address")) != a.HardwareAddr.String() {
		return // of a card of this name in another namespace, whose files are mounted here
	}
	if used, _ := filepath.Glob(filepath.Join(files, "queues", "rx-*")); len(used) > 0 {
		c.Queues = len(used) // a driver makes room for more than it uses
	}
	device := filepath.Join(files, "device")
	c.NUMA = machine.Fact(filepath.Join(device, "numa_node"))
	if c.NUMA == "-1" {
		c.NUMA = "" // there is one node
	}
	// A virtio card has them at the device above it.
	vectors, _ := filepath.Glob(filepath.Join(device, "msi_irqs", "*"))
	if above, err := filepath.EvalSymlinks(device); err == nil && len(vectors) == 0 {
		vectors, _ = filepath.Glob(filepath.Join(filepath.Dir(above), "msi_irqs", "*"))
	}
	var cpus []string
	for _, v := range vectors {
		irq := filepath.Join(root, "proc/irq", filepath.Base(v))
		if at := cmp.Or(machine.Fact(filepath.Join(irq, "effective_affinity_list")), machine.Fact(filepath.Join(irq, "smp_affinity_list"))); at != "" {
			cpus = append(cpus, at)
		}
	}
	slices.SortFunc(cpus, func(a, b string) int {
		x, _ := strconv.Atoi(a)
		y, _ := strconv.Atoi(b)
		return cmp.Or(cmp.Compare(x, y), strings.Compare(a, b))
	})
	c.Interrupts = strings.Join(slices.Compact(cpus), ",")
}
