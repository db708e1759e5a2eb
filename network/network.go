// Package network is the catalogue of container networks: how pods are attached and reach each other. A network is
// planned as pure data (links, addresses, routes, rules) over a topology; a testbed carries the plan out.
package network

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"netdelta/internal/gather"
	"netdelta/internal/suggest"
	"netdelta/result"
	"netdelta/unit"
)

// Network is an entry of the catalogue: a way to attach pods and to let them reach each other.
type Network struct {
	// Name says the mechanism.
	Name string
	// Summary is one line on how it works.
	Summary string
	// UsedBy names systems whose pods are attached like this.
	UsedBy []string
	// Demonstration says that it shows what a mechanism can do, and is no choice for pods today: reports show it after the others, and
	// advice and summaries leave it out.
	Demonstration bool
	// Overhead is what encapsulation adds to each packet between nodes whose underlay is of the given family, besides the
	// Ethernet header that every frame has; nil where nothing is added.
	Overhead func(underlay result.Family) unit.Bytes
	// Reach says under which address a client finds a server.
	Reach Reach
	// Crossing says how packets of pods get to other nodes, and OnLinkUnderSwap that pods which outlive the network are on the
	// underlay's link instead.
	Crossing        Crossing
	OnLinkUnderSwap bool
	// NoESP6 says why packets between nodes can't be protected by IPsec over IPv6; "" where they can.
	NoESP6 string
	// Encryption is the network's own, as result.Conditions names it; "" leaves it to the conditions. Overhead holds
	// what it adds.
	Encryption string
	// NoSameNodeUnderSwap says that traffic between two pods of one node takes another way when pods outlive the network
	// (Topology.PodsOutlive) than without. A same-node trial under live swap then measures something else and must be refused.
	NoSameNodeUnderSwap bool
	// OwnPods says that it needs its own pods, so it can't be live-swapped: it gets a testbed of its own.
	OwnPods bool
	// SharesPorts says that clients of several testbeds are in one namespace, which is the machine's own, so that the kernel has to choose
	// their ports.
	SharesPorts bool
	// BridgeNetfilter says that bridges of nodes hand their packets to the firewall of IP, unless the conditions say otherwise: so it is
	// in the systems that the network stands for.
	BridgeNetfilter bool
	// FromNode says how a client in its node's own namespace reaches pods, where the conditions have it there.
	FromNode NodeWay
	// Build writes the plan for a topology that Plan has checked.
	Build func(Topology) Plan
}

// Users names, for each network of the catalogue, the systems whose pods are attached like this. found says that the nodes of a run
// are machines in use: processes in their own namespaces are then the network Metal, and host has a device over their card for each node.
func Users(found bool) map[string][]string {
	users := map[string][]string{}
	for _, n := range Catalogue() {
		users[n.Name] = n.UsedBy
	}
	for _, p := range Products() {
		users[p.Name] = []string{p.Network} // its users know the product, and not what stands in for it
	}
	if found {
		users[Metal], users["host"] = users["host"], nil
	}
	return users
}

// IsDemonstration says whether a name is that of a Demonstration of the catalogue.
func IsDemonstration(name string) bool { return demonstrations()[name] }

var demonstrations = sync.OnceValue(func() map[string]bool {
	all := map[string]bool{}
	for _, n := range Catalogue() {
		all[n.Name] = n.Demonstration
	}
	return all
})

// Reach says under which address a client finds a server.
type Reach int

const (
	// ByPod reaches a server at its pod's own address.
	ByPod Reach = iota
	// ByNode reaches a server at its node's address, where its ports are published; from a pod of the same node at its own.
	ByNode
)

// Plan checks the topology against what the network needs and returns what has to be built.
func (n Network) Plan(t Topology) (Plan, error) {
	if err := t.Check(); err != nil {
		return Plan{}, fmt.Errorf("plan network %s: %w", n.Name, err)
	}
	encryption, err := n.encryption(t)
	if err != nil {
		return Plan{}, err
	}
	overhead := encryption.Reserve
	if n.Overhead != nil && n.Encryption == "" {
		overhead += n.Overhead(t.Family)
	}
	if least := leastMTU(t.Family) + overhead; t.MTU < least {
		return Plan{}, fmt.Errorf("plan network %s: the underlay's MTU of %d is too small: %d bytes of encapsulation leave %d for a pod, which needs %d for %s; set the link's MTU to %d or more",
			n.Name, int64(t.MTU), int64(overhead), int64(t.MTU-overhead), int64(leastMTU(t.Family)), familyName(t.Family), int64(least))
	}
	inner := t.inner(encryption)
	p := n.Build(inner)
	p.Network, p.Overhead, p.MTU, p.Reach = n.Name, overhead, t.MTU-overhead, n.Reach
	p, err = n.fromNode(p.encrypt(encryption, inner), t)
	if err != nil {
		return Plan{}, err
	}
	return conditioned(n.firewalled(p, t.Conditions), t)
}

// Catalogue returns every network, in the order in which they are listed. It is a fresh value each time.
func Catalogue() []Network {
	return []Network{
		host(),
		bridge(),
		bridgeNAT(),
		macvlan(),
		ipvlanL2(),
		ipvlanL3(),
		routed(),
		vxlan(),
		vxlanRouted(),
		ebpfRouted(),
		ebpfVxlan(),
		sockmap(),
		xdp(),
		udpTun(),
		sriov(),
		ipip(),
		gre(),
		geneve(),
		netkit(),
		netkitL2(),
		ovs(),
		wireguard(),
		ipsec(),
	}
}

// UnknownError says that a catalogue has no network of this name.
type UnknownError struct {
	Name string
	// Nearest is the known name closest to it, "" where none is close.
	Nearest string
	Known   []string
}

// Error implements error.
func (e *UnknownError) Error() string {
	if e.Nearest != "" {
		return fmt.Sprintf("unknown network %q; did you mean %q?", e.Name, e.Nearest)
	}
	return fmt.Sprintf("unknown network %q; known are %s", e.Name, strings.Join(e.Known, ", "))
}

// Names are what networks are called, in their order.
func Names(networks []Network) []string {
	return gather.Each(networks, func(n Network) string { return n.Name })
}

// Find returns the network of the given name, or an *UnknownError that suggests the nearest one. A product's name finds the network
// that stands in for it, which is then called as the product. A name that begins with CNIPrefix need not be in the list: its file is read.
func Find(networks []Network, name string) (Network, error) {
	if n, is := gather.First(networks, func(n Network) bool { return n.Name == name }); is {
		return n, nil
	}
	if strings.HasPrefix(name, CNIPrefix) {
		return ReadCNI(name)
	}
	if p, is := FindProduct(name); is && p.Name == name {
		n, err := Find(networks, p.Network)
		n.Name, n.UsedBy, n.Demonstration = name, []string{p.Network}, false
		return n, err
	}
	known := Names(networks)
	nearest, _ := suggest.Nearest(name, known)
	return Network{}, &UnknownError{Name: name, Nearest: nearest, Known: known}
}

// Product is a system as its users name it, in one of its configurations, and the network whose datapath stands in for it.
type Product struct {
	// Name is how --networks takes it; System is the system alone.
	Name, System string
	// Network is the mechanism.
	Network string
}

// Products are the names of products that stand for networks, grouped by system. Not all that a product does is in a
// network: it has the devices, routes and headers that packets pass, and none of the product's own policies or proxies.
func Products() []Product {
	return []Product{
		{"calico-native", "Calico", "routed"},
		{"calico-vxlan", "Calico", "vxlan-routed"},
		{"calico-ipip", "Calico", "ipip"},
		{"calico-wireguard", "Calico", "wireguard"},
		{"cilium", "Cilium", "ebpf-vxlan"},
		{"cilium-native", "Cilium", "ebpf-routed"},
		{"cilium-geneve", "Cilium", "geneve"},
		{"cilium-netkit", "Cilium", "netkit"},
		{"cilium-wireguard", "Cilium", "wireguard"},
		{"cilium-ipsec", "Cilium", "ipsec"},
		{"flannel", "Flannel", "vxlan-routed"},
		{"flannel-host-gw", "Flannel", "routed"},
		{"flannel-udp", "Flannel", "udp-tun"},
		{"flannel-ipip", "Flannel", "ipip"},
		{"flannel-wireguard", "Flannel", "wireguard"},
		{"k3s", "k3s", "vxlan-routed"},
		{"k3s-host-gw", "k3s", "routed"},
		{"kube-router", "kube-router", "routed"},
		{"antrea", "Antrea", "geneve"},
		{"ovn-kubernetes", "OVN-Kubernetes", "geneve"},
		{"weave", "Weave Net", "ovs"},
		{"weave-sleeve", "Weave Net", "udp-tun"},
		{"docker", "Docker", "bridge-nat"},
		{"docker-host", "Docker", "host"},
		{"docker-macvlan", "Docker", "macvlan"},
		{"docker-ipvlan", "Docker", "ipvlan-l2"},
		{"docker-overlay", "Docker", "vxlan"},
		{"podman", "Podman", "bridge-nat"},
	}
}

// Mechanism is the network of the catalogue that a name means: of a product its stand-in, and of all else the name itself.
func Mechanism(name string) string {
	if p, is := products()[name]; is {
		return p.Network
	}
	return name
}

var products = sync.OnceValue(func() map[string]Product {
	all := map[string]Product{}
	for _, p := range Products() {
		all[p.Name] = p
	}
	return all
})

// Means says whether a name, a network's or a product's, means this product.
func (p Product) Means(name string) bool { return name == p.Name || name == p.Network }

// FindProduct is the product of a name, false if there is none. Letters may be capitals.
func FindProduct(name string) (Product, bool) {
	return gather.First(Products(), func(p Product) bool { return strings.EqualFold(p.Name, name) })
}

// wires are the networks whose packets between nodes travel in each encapsulation or encryption, as a survey of a cluster names them; "none" is
// neither.
func wires() map[string][]string {
	return map[string][]string{
		"none": {"routed", "ebpf-routed"}, "vxlan": {"vxlan-routed", "ebpf-vxlan"}, "ipip": {"ipip"}, "geneve": {"geneve"},
		"wireguard": {"wireguard"}, "ipsec": {"ipsec"}, "udp": {"udp-tun"},
	}
}

// ProductOf is the product of a system whose packets between nodes travel in an encapsulation or encryption, both as a survey of a cluster
// names them: "flannel" in "vxlan"; "none" is neither. It is false where the catalogue has none.
func ProductOf(system, wire string) (Product, bool) {
	return gather.First(Products(), func(p Product) bool {
		return strings.EqualFold(p.System, system) && slices.Contains(wires()[wire], p.Network)
	})
}

// WireOf is what the packets of a product travel in between nodes: "vxlan"; "" where that is nothing, or not known.
func WireOf(p Product) string {
	for wire, networks := range wires() {
		if wire != "none" && slices.Contains(networks, p.Network) {
			return wire
		}
	}
	return ""
}

// Move is a change that users of a system can make while they keep the system.
type Move struct{ From, To Product }

// Moves are the changes within systems that are worth weighing. Those that give up encryption are among them: what
// it costs is a reason to look at where it is needed.
func Moves() []Move {
	var all []Move
	for _, m := range []struct {
		to   string
		from []string
	}{
		{"calico-native", []string{"calico-vxlan", "calico-ipip", "calico-wireguard"}},
		{"calico-vxlan", []string{"calico-ipip"}},
		{"cilium-native", []string{"cilium", "cilium-geneve", "cilium-wireguard", "cilium-ipsec"}},
		{"cilium-wireguard", []string{"cilium-ipsec"}},
		{"cilium-netkit", []string{"cilium-native"}},
		{"flannel-host-gw", []string{"flannel", "flannel-udp", "flannel-ipip", "flannel-wireguard"}},
		{"flannel", []string{"flannel-udp"}},
		{"k3s-host-gw", []string{"k3s"}},
		{"docker-macvlan", []string{"docker", "docker-overlay"}},
		{"docker-ipvlan", []string{"docker", "docker-overlay"}},
		{"docker-host", []string{"docker"}},
	} {
		to, _ := FindProduct(m.to)
		for _, name := range m.from {
			from, _ := FindProduct(name)
			all = append(all, Move{from, to})
		}
	}
	return all
}
