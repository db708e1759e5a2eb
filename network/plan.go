package network

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"netdelta/internal/gather"
	"netdelta/unit"
)

// SpaceKind tells the kinds of network namespaces of a topology apart.
type SpaceKind int

// The kinds of namespaces.
const (
	SwitchSpace SpaceKind = iota // where the underlay's ports meet
	NodeSpace
	PodSpace
)

// Space refers to a network namespace of the topology.
type Space struct {
	Kind  SpaceKind
	Index int // into Topology.Nodes or Topology.Pods
}

// InSwitch is the namespace in which the underlay's ports meet.
func InSwitch() Space { return Space{Kind: SwitchSpace} }

// InNode is the namespace of node i.
func InNode(i int) Space { return Space{Kind: NodeSpace, Index: i} }

// InPod is the namespace of pod j.
func InPod(j int) Space { return Space{Kind: PodSpace, Index: j} }

// String names the namespace as NewTopology names nodes and pods.
func (s Space) String() string {
	switch s.Kind {
	case NodeSpace:
		return fmt.Sprintf("node%d", s.Index)
	case PodSpace:
		return fmt.Sprintf("pod%d", s.Index)
	}
	return "switch"
}

// Device refers to a network device.
type Device struct {
	In   Space
	Name string
}

// String is the namespace and the name.
func (d Device) String() string { return d.In.String() + "/" + d.Name }

// Role says what a device is for.
type Role string

// The roles of devices.
const (
	RolePod           Role = "pod device"
	RolePort          Role = "underlay port"
	RoleSwitch        Role = "underlay switch"
	RoleSwitchPort    Role = "switch port"
	RoleNodeEnd       Role = "node's end of a pod's veth"
	RoleBridge        Role = "node bridge"
	RoleEncapsulation Role = "encapsulation"
	RoleLoopback      Role = "loopback"
	RoleLink          Role = "link of a bond"
)

// Plan is all that a testbed has to build for a network. It is pure data, but for the function behind Path.
type Plan struct {
	Network string
	// MTU is the MTU of the pods' devices: the underlay's less the overhead.
	MTU unit.Bytes
	// Overhead is what encapsulation adds to each packet between nodes; 0 without encapsulation.
	Overhead unit.Bytes
	// Encryption is used between nodes; its reserve is part of Overhead.
	Encryption Encryption
	Reach      Reach
	// Settings are written in each namespace before anything is made in it.
	Settings []Sysctl
	// Underlay joins the nodes; a testbed whose nodes are joined already leaves it out. Ops come after it. Both are in order.
	Underlay, Ops []Op
	// Pods are in the order of the topology's.
	Pods []Endpoint
	// Nodes are the nodes' addresses.
	Nodes []netip.Addr
	// Services are the pods' virtual addresses, in their order, where the conditions have clients use them; else nil.
	Services []netip.Addr

	// Observed says that devices which the plan can't name stand on the way as well: those that plugins make. Path lists what is
	// known beforehand, and a proof notes the others as it finds them.
	Observed bool

	// Found says that the nodes are used as they are found, and that nothing is built in them.
	Found bool

	path func(from, to int, protocol Protocol) []Hop
	// left are namespaces that the network has for pods whose processes are elsewhere.
	left []Space
	// partial says that the plan is a part: of one node, or of all nodes without the switch.
	partial bool
	node    int
}

// Endpoint is what a plan makes of a pod.
type Endpoint struct {
	// In is the namespace of the pod's processes: its own, or its node's under host networking.
	In Space
	// Address is the pod's own address.
	Address netip.Addr
	Node    int
	// Device carries the pod's traffic to other nodes.
	Device string
}

// Endpoint is where a pod reaches the given port of the pod to: a virtual address where there is one.
func (p Plan) Endpoint(from, to int, port uint16) netip.AddrPort {
	if p.Services != nil {
		return netip.AddrPortFrom(p.Services[to], port)
	}
	return netip.AddrPortFrom(p.Backend(from, to), port)
}

// Backend is the address by which packets on their way from one pod name the pod to: a virtual address is translated to it before a
// packet leaves its client.
func (p Plan) Backend(from, to int) netip.Addr { return p.backend(p.Pods[from], to) }

func (p Plan) backend(from Endpoint, to int) netip.Addr {
	server := p.Pods[to]
	if p.Reach == ByPod || from.In.Kind == PodSpace && from.Node == server.Node {
		return server.Address
	}
	return p.Nodes[server.Node]
}

// Hop is a device that each packet of a request crosses.
type Hop struct {
	Device
	Role Role
	// Sends tells whether the device transmits the packet (or receives it), as its counters see it.
	Sends bool
	// Encapsulated says that the packet is inside the encapsulation here, and Encrypted that it can't be read either.
	Encapsulated, Encrypted bool
	// Framed says that the device counts the packet with its Ethernet header, and Unseen that no tap sees it there, as is so
	// with XDP.
	Framed, Unseen bool
}

// String is the device and an arrow that leads out of it or into it.
func (h Hop) String() string {
	s := h.Device.String()
	switch {
	case h.Encrypted:
		s += "(encrypted)"
	case h.Encapsulated:
		s += "(encapsulated)"
	}
	if h.Sends {
		return s + ">"
	}
	return ">" + s
}

// Path lists the devices that a packet of the protocol crosses from one pod to another, in order, from the first device that
// counts it to the last; it is empty where the network takes data past all devices. The underlay switch is left out. The
// answer takes the same devices back, but for those that only one of pods and nodes gets past.
func (p Plan) Path(from, to int, protocol Protocol) []Hop { return p.path(from, to, protocol) }

// SameNode tells whether two pods are on one node.
func (p Plan) SameNode(a, b int) bool { return p.Pods[a].Node == p.Pods[b].Node }

// loopbackMTU is what Linux gives to lo.
const loopbackMTU unit.Bytes = 65536

// PathMTU is the largest IP packet that goes from one pod to another without fragmentation.
func (p Plan) PathMTU(from, to int) unit.Bytes {
	if p.Pods[from].In == p.Pods[to].In {
		return loopbackMTU
	}
	return p.MTU
}

// Spaces lists the namespaces that the plan uses: the switch, the nodes, and the pods that have one of their own; of a part, those
// that are in it.
func (p Plan) Spaces() []Space {
	return slices.DeleteFunc(p.allSpaces(), func(s Space) bool { return !p.has(s) })
}

func (p Plan) allSpaces() []Space {
	spaces := []Space{InSwitch()}
	for i := range p.Nodes {
		spaces = append(spaces, InNode(i))
	}
	for _, e := range p.Pods {
		if e.In.Kind == PodSpace {
			spaces = append(spaces, e.In)
		}
	}
	return append(spaces, p.left...)
}

// all lists the operations of the underlay and of the network.
func (p Plan) all() []Op { return slices.Concat(p.Underlay, p.Ops) }

// Needs lists what the kernel must have for the plan, each need once, in the order of first use.
func (p Plan) Needs() []Need {
	var needs []Need
	add := func(op Op) {
		if n := op.need(); n != needNothing {
			needs = gather.Once(needs, n)
		}
	}
	for _, op := range p.all() {
		add(op)
	}
	for _, op := range p.Settings {
		add(op)
	}
	return needs
}

// String renders the plan as text, an operation a line, for people and for tests that compare.
func (p Plan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "network %s, pod MTU %d", p.Network, int64(p.MTU))
	if p.Overhead > 0 {
		fmt.Fprintf(&b, ", %d bytes of encapsulation", int64(p.Overhead))
	}
	b.WriteByte('\n')
	b.WriteString("settings:\n")
	for _, o := range p.Settings {
		fmt.Fprintf(&b, "  %s\n", o)
	}
	for _, part := range []struct {
		name string
		ops  []Op
	}{{"underlay", p.Underlay}, {"network", p.Ops}} {
		fmt.Fprintf(&b, "%s:\n", part.name)
		for _, op := range part.ops {
			fmt.Fprintf(&b, "  %s\n", strings.ReplaceAll(op.String(), "\n", "\n  "))
		}
	}
	b.WriteString("pods:\n")
	for j, e := range p.Pods {
		fmt.Fprintf(&b, "  pod%d in %s, %s on %s\n", j, e.In, e.Address, e.Device)
	}
	return b.String()
}

// Unforeseen says that a device is one that the plan can't name: what plugins have made besides the pods' own devices. It may
// carry what its neighbours on the way do.
func (p Plan) Unforeseen(d Device) bool {
	if !p.Observed || d.In.Kind == SwitchSpace || d.Name == "lo" {
		return false
	}
	return !slices.ContainsFunc(p.Made(), func(m Made) bool { return m.Device == d })
}
