package testbed

import (
	"context"
	"fmt"
	"net/netip"

	"netdelta/network"
	"netdelta/result"
	"netdelta/unit"
)

// Observer is a testbed whose devices in nodes and pods can be observed, so that a trial can prove which way its packets went.
type Observer interface {
	Testbed
	// Plan is what the testbed was built from.
	Plan() network.Plan
	// Path lists the devices that a packet of the protocol crosses from one pod to another, nil for a pod of another testbed.
	Path(from, to Pod, protocol network.Protocol) []network.Hop
	// Counters reads the counters of all devices, including devices that the plan does not know.
	Counters(ctx context.Context) (map[network.Device]Counters, error)
	// Stacks reads what the IP stack of each namespace has counted.
	Stacks(ctx context.Context) (map[network.Space]Stack, error)
	// Tap samples the packets on all devices of the given namespaces from now on. The error is a *PermissionError where this
	// user may not, and an *UnsupportedError where the kernel can't.
	Tap(ctx context.Context, spaces []network.Space) (Tap, error)
	// Fit sends one UDP datagram, as an IP packet of the given size that must not be fragmented, from one pod to a port of
	// the other on which nothing listens. It returns a *TooLargeError where the sender's own kernel refuses the size; whether
	// the packet arrives is for a Tap to see.
	Fit(ctx context.Context, from, to Pod, size unit.Bytes) error
}

// ConfigWatch notices what changes in the configuration of a testbed. Close is idempotent.
type ConfigWatch interface {
	// End returns what changed since the watch began. Rounds are for the caller to fill in.
	End() ([]result.ConfigChange, error)
	Close() error
}

// Stack is what the IP stack of a namespace has counted since it was made, IPv4 and IPv6 together.
type Stack struct {
	FragmentsMade, Reassembled, FragmentationRefused uint64
}

// Tap is a sample of packets under way. Close is idempotent.
type Tap interface {
	// Packets returns the packets seen since the last call, in order within each namespace, and how many more were dropped for
	// lack of room.
	Packets() (seen []Packet, missed int, err error)
	Close() error
}

// Packet is one packet as a device saw it.
type Packet struct {
	Device   network.Device
	Outgoing bool
	// Length is the length of the whole frame, with its link header. Segment is the payload length of each segment if the frame
	// is still to be segmented (GSO), else zero.
	Length, Segment unit.Bytes
	// Head is the beginning of the frame, enough for all headers.
	Head []byte
	// Bare says that the device has no link header: the frame begins with an IP header.
	Bare bool
}

// TooLargeError says that a packet is larger than the path's MTU, as the sender's kernel knows it.
type TooLargeError struct{ Size, MTU unit.Bytes }

// Error implements error.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("a packet of %d bytes is larger than the path's MTU of %d", int64(e.Size), int64(e.MTU))
}

// Counters are a device's counters since it was made.
type Counters struct {
	// Index is the device's number in its namespace: with another number it is another device of the same name.
	Index                          int
	SentPackets, SentBytes         uint64
	ReceivedPackets, ReceivedBytes uint64
	Dropped, Errors                uint64 // in both directions
}

// PathObserver is a testbed on a cluster that netdelta has not built, so that no plan says which way packets go. It observes them
// inside its pods and, where that is allowed, on their nodes.
type PathObserver interface {
	Testbed
	// Watch starts observing the path between two pods.
	Watch(ctx context.Context, from, to Pod) (Watch, error)
	// Count reads the counters of the devices between two pods: of the pods themselves, and of their nodes where nodes can
	// be observed.
	Count(ctx context.Context, from, to Pod) (map[network.Device]Counters, error)
}

// Watch is an observation of a path that has started and not ended. Close is idempotent.
type Watch interface {
	// End returns what was observed since the Watch started. The client called the given address.
	End(ctx context.Context, called netip.AddrPort) (Observation, error)
	Close() error
}

// Reach says how a client reaches its server on a cluster.
type Reach string

// The ways to reach a server.
const (
	// ReachHost goes from node to node: both ends are in their node's own namespace.
	ReachHost Reach = "host"
	// ReachPod goes to the server's own address, however it was given.
	ReachPod Reach = "pod"
	// ReachService goes to a virtual address, which is translated on the client's node.
	ReachService Reach = "service"
	// ReachNodePort goes to a port of a node, which is translated there.
	ReachNodePort Reach = "nodeport"
	// ReachSecondary goes to an address that the server has in a secondary network. How that network connects its pods is not known.
	ReachSecondary Reach = "secondary"
)

// The namespaces of an observation. A pod in its node's own namespace is observed there, and where both pods are on one node,
// that is the client's.
const (
	atClient = iota
	atServer
)

// ClientNode is the namespace of the client's node.
func ClientNode() network.Space { return network.InNode(atClient) }

// ServerNode is the namespace of the server's node, where it is not the client's.
func ServerNode() network.Space { return network.InNode(atServer) }

// ClientPod is the namespace of the client's pod.
func ClientPod() network.Space { return network.InPod(atClient) }

// ServerPod is the namespace of the server's pod.
func ServerPod() network.Space { return network.InPod(atServer) }

// Observation is what was observed of the path between two pods while a load ran. It is plain data.
type Observation struct {
	Reach Reach
	// Expect is the encapsulation between nodes that the user expects, "" if not given.
	Expect Encapsulation
	// ExpectMTU is the MTU that the user expects, 0 if not given.
	ExpectMTU unit.Bytes
	// Via is the card by which packets must leave nodes; "" is the card of the route to the other node.
	Via string
	// Called is what the client called, and Backend the server itself.
	Called, Backend netip.AddrPort
	Client, Server  PathEnd
	// Spaces are the namespaces that could be observed.
	Spaces map[network.Space]ObservedSpace
}

// PathEnd is where one end of a path is.
type PathEnd struct {
	Pod, Node string // by their names
	// Address is the pod's in the observed network, NodeAddress its node's.
	Address, NodeAddress netip.Addr
	// In is the namespace of the pod's processes, On its node's: the same for a pod in its node's own namespace.
	In, On network.Space
	// Unwatched says why the node could not be watched, if that was tried.
	Unwatched string
}

// ObservedSpace is what was observed in one network namespace.
type ObservedSpace struct {
	// Name is the node's name, or says which pod it is.
	Name       string
	Interfaces []Interface
	// Before and After are the devices' counters by name.
	Before, After           map[string]Counters
	StackBefore, StackAfter Stack
	// Packets are a sample of the packets of the pods, their nodes and services, and no others. Missed is how many were dropped
	// for lack of room. Lacks says why there is no sample: "CAP_NET_RAW".
	Packets []Packet
	Missed  int
	Lacks   string
	// Routes are the ways out of here to the ends and their nodes.
	Routes []Route
	// Peers are those who are connected to the server's port by TCP, as its kernel knows them.
	Peers []netip.AddrPort
}

// Interface is a device of a machine that was not built by netdelta.
type Interface struct {
	Index int    `json:"index"`
	Name  string `json:"name"`
	// Kind is the kernel's name for it: "vxlan", "veth", "bond"; "device" for a network card.
	Kind string `json:"kind"`
	MTU  int    `json:"mtu"`
	Up   bool   `json:"up,omitempty"`
	// Master is the bridge or bond that it is a part of, Lower the device of the same namespace beneath it, "" without.
	Master    string         `json:"master,omitempty"`
	Lower     string         `json:"lower,omitempty"`
	Addresses []netip.Prefix `json:"addresses,omitempty"`
	// Driver and Speed are what a network card reports.
	Driver string             `json:"driver,omitempty"`
	Speed  unit.BitsPerSecond `json:"speed,omitempty"`
	// BondMode and HashPolicy are how a bond shares what it sends among its links: "802.3ad", "layer2".
	BondMode   string `json:"bond_mode,omitempty"`
	HashPolicy string `json:"hash_policy,omitempty"`
	// Port is the UDP port of a tunnel, Network the number of the network in it.
	Port    uint16 `json:"port,omitempty"`
	Network uint32 `json:"network,omitempty"`
}

// Route is how a namespace reaches an address.
type Route struct {
	To      netip.Addr `json:"to"`
	Device  string     `json:"device"`
	Gateway netip.Addr `json:"gateway"` // not valid where the address is on the link
	Source  netip.Addr `json:"source"`
	// MTU is the path MTU if the kernel knows one, else 0: then the device's MTU applies.
	MTU int `json:"mtu,omitempty"`
}
