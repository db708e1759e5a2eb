package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"netdelta/internal/machine"
	"netdelta/internal/netns"
	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
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

// look finds the cards that the order means, and reports on the server.
func (o Order) look() (cards []string, r Report, err error) {
	found, err := machine.Describe(machine.Version())
	if err != nil {
		return nil, r, err
	}
	r = Report{
		Host: found.Hostname, Kernel: found.Kernel, Arch: found.Arch, OS: found.OS, CPU: found.CPU, Virtual: found.Virtual, Clock: found.Clock,
	}
	if err := o.lookAtCards(&r); err != nil {
		return nil, r, err
	}
	if o.Do == Look {
		r.Rights, r.Networks = tried()
		return nil, r, nil
	}
	for i, c := range r.Chosen() {
		if err := o.refuses(c, Cards(o.Card)[i], r); err != nil {
			return nil, r, err
		}
		cards = append(cards, c.Name)
	}
	return cards, r, nil
}

// refuses says why the node can't have a card in the order's mode. A card without a name was not found under the name asked for.
func (o Order) refuses(c CardReport, asked string, r Report) error {
	switch {
	case c.Name == "" && asked == "":
		return fmt.Errorf("no card of this server has the address %s, by which it was reached: name one by --nic macvlan:CARD (there are %s)", o.Address, names(r.Cards))
	case c.Name == "":
		return fmt.Errorf("this server has no card %s: there are %s", asked, names(r.Cards))
	case o.Mode == Take && c.NotTaken != "":
		return fmt.Errorf("the card %s can't be taken: %s; name a spare one, or --nic macvlan:%s", c.Name, c.NotTaken, c.Name)
	case o.Mode == VF && c.Functions == 0:
		return fmt.Errorf("the card %s can have no virtual functions: name one that can, or take it as a whole by --nic take:%s", c.Name, c.Name)
	case !c.Up && o.Mode != Take:
		return fmt.Errorf("the card %s is down: bring it up, name another, or have it taken by --nic take:%s", c.Name, c.Name)
	}
	return nil
}

// lookAtCards reports on all cards, and on those that the order means.
func (o Order) lookAtCards(r *Report) error {
	links, err := linksHere()
	if err != nil {
		return err
	}
	asked := Cards(o.Card)
	chosen := make([]CardReport, len(asked))
	for _, l := range links {
		if l.Attrs().Flags&net.FlagLoopback != 0 || len(l.Attrs().HardwareAddr) == 0 {
			continue
		}
		c := about(l)
		has, err := o.carriesUs(l)
		if err == nil {
			c.NotTaken, err = o.notTaken(l, has)
		}
		if err == nil {
			c.Addresses, err = addressesOf(l)
		}
		if err == nil && o.Do == Look {
			c.NoMacvlan, c.NoIPVlan = none(Macvlan, l), none(IPVlan, l)
		}
		if err != nil {
			return err
		}
		r.Cards = append(r.Cards, c)
		for i, name := range asked {
			if c.Name == name || name == "" && has {
				chosen[i] = c
			}
		}
	}
	r.Card, r.Further = chosen[0], chosen[1:]
	return nil
}

// tried finds out, in namespaces made for the purpose, which networks the kernel has what it takes for.
func tried() (rights string, networks []NetworkReport) {
	driver := lab.NewDriver(network.Catalogue())
	for _, n := range network.Catalogue() {
		one := NetworkReport{Name: n.Name}
		if err := driver.Supports(context.Background(), testbed.Spec{Network: n.Name}); err != nil {
			one.Why = err.Error()
			if denied, ok := errors.AsType[*testbed.PermissionError](err); ok {
				return denied.Error(), nil
			}
		}
		networks = append(networks, one)
	}
	return "", networks
}

// none says why no device of a kind can be over a card. One is made for the purpose, in a namespace that ends at once.
func none(kind string, l netlink.Link) string {
	space, err := netns.New(func() error { return nil })
	if err != nil {
		return err.Error()
	}
	defer func() { _ = space.Close() }() // nothing is in it that anybody needs
	err = space.WithFD(func(fd int) error {
		return netlink.LinkAdd(over(kind, netlink.LinkAttrs{Name: "try", ParentIndex: l.Attrs().Index, Namespace: netlink.NsFd(fd)}))
	})
	if err == nil { // gone before the next kind is tried: a card has devices of one kind
		err = space.Do(func() error {
			made, err := netlink.LinkByName("try")
			if err != nil {
				return err
			}
			return netlink.LinkDel(made)
		})
	}
	if errors.Is(err, unix.EOPNOTSUPP) {
		return "this kernel has no such devices"
	}
	if err != nil {
		return "not over this one: " + err.Error()
	}
	return ""
}

// names lists cards for people.
func names(cards []CardReport) (text string) {
	for i, c := range cards {
		if i > 0 {
			text += ", "
		}
		text += c.Name
	}
	return text
}

// carriesUs says whether a card has the address by which the server was reached.
func (o Order) carriesUs(l netlink.Link) (bool, error) {
	at, err := netip.ParseAddr(o.Address)
	if err != nil {
		return false, nil //nolint:nilerr // reached by something else than IP: no card is known to carry it
	}
	addresses, err := addressesOf(l)
	if err != nil {
		return false, err
	}
	for _, a := range addresses {
		if one, err := netip.ParsePrefix(a); err == nil && one.Addr() == at.Unmap().WithZone("") {
			return true, nil
		}
	}
	return false, nil
}

// notTaken says why a card can't be taken.
func (o Order) notTaken(l netlink.Link, carriesUs bool) (string, error) {
	a := l.Attrs()
	switch {
	case carriesUs:
		return "this SSH connection goes over it", nil
	case a.MasterIndex != 0:
		return "it is a port of a bridge or a bond", nil
	case a.ParentIndex != 0 && l.Type() != "veth":
		return "it is a device over another one", nil
	case l.Type() == "bond" || l.Type() == "bridge":
		return "a " + l.Type() + " can't leave its network namespace", nil
	}
	routes, err := routesOver(a.Index)
	if err != nil {
		return "", err
	}
	for _, r := range routes {
		if r.Dst == nil || r.Dst.IP.IsUnspecified() {
			return "the server's default route goes over it", nil
		}
	}
	return "", nil
}

// Way is what a server found of the way to another one.
type Way struct {
	To string `json:"to"`
	// MTU is the size of the largest packets that arrived of those that the way's first card takes, in one piece; 0 where the other end
	// answered none.
	MTU int `json:"mtu"`
	// Card is the MTU of that card.
	Card int    `json:"card"`
	Why  string `json:"why,omitempty"`
}

// ways finds out how large packets can be that get to the peers.
func (o Order) ways() (all []Way) {
	for _, to := range o.Peers {
		w := Way{To: to}
		at, err := netip.ParseAddr(w.To)
		if err == nil {
			w.MTU, w.Card, err = nsmonitor.LargestPacket(at)
		}
		if err != nil {
			w.Why = err.Error()
		}
		all = append(all, w)
	}
	return all
}
