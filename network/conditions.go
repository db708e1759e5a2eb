package network

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"netdelta/result"
)

// NotPossibleError says that a network can't be had under a condition, on any machine: what the condition asks for and how
// the network works exclude each other. The rest of a study goes on without that combination.
type NotPossibleError struct {
	// Network is the name of the network, Condition the level that it can't meet: "encryption=wireguard".
	Network, Condition string
	// Why says what keeps it from it: "its pods sit directly on the underlay's link".
	Why string
}

// Error implements error.
func (e *NotPossibleError) Error() string {
	return fmt.Sprintf("network %s is not possible with %s: %s", e.Network, e.Condition, e.Why)
}

// conditioned adds to a plan what the topology's conditions ask for on top of the network itself. The draft's ports have
// the conditions of the underlay already.
func conditioned(p Plan, t Topology) (Plan, error) {
	if err := linksRefused(p, t); err != nil {
		return p, err
	}
	p, err := policed(p.tuned(t.Conditions, t.Family), t)
	if err != nil {
		return p, err
	}
	return served(p, t)
}

// linksRefused is a *NotPossibleError for conditions of links that a network's packets don't meet. What a program sends by XDP goes
// past the queues of a node's port and the links of a bond; a link's rate holds all the same, at the switch's end of the next
// link.
func linksRefused(p Plan, t Topology) error {
	why, rated := "", true
	switch {
	case slices.ContainsFunc(p.Made(), func(m Made) bool { return m.Card }):
		why, rated = "its packets cross real network cards, not the links of the lab", false
	case len(Of[XDPRedirection](p.Ops)) > 0:
		why = "its packets go past the queues of the nodes' ports, straight to the driver"
	}
	if why == "" {
		return nil
	}
	c := t.Conditions
	for _, one := range []struct {
		asked     bool
		condition string
	}{
		{!rated && t.Rate > 0, "link.rate"}, {c.LinkDelay > 0, "link.delay"}, {c.LinkLoss > 0, "link.loss"}, {c.LinkCount > 1, "link.count"},
		{c.NodeLinks != "", "link.nodes"},
	} {
		if one.asked {
			return &NotPossibleError{p.Network, one.condition, why}
		}
	}
	return nil
}

// tuned adds to a plan what conditions ask of its devices. It comes last, since it is about all devices.
func (p Plan) tuned(c result.Conditions, family result.Family) Plan {
	if c.LinkLoss > 0 {
		p.Ops = append(p.Ops, p.patience(family)...)
	}
	for _, s := range p.Spaces() {
		if s.Kind == SwitchSpace {
			continue
		}
		if f := (Features{In: s, TSO: c.TSO, GSO: c.GSO, GRO: c.GRO, LRO: c.LRO}); len(f.Each()) > 0 {
			p.Ops = append(p.Ops, f)
		}
		if c.RPS != "" {
			p.Ops = append(p.Ops, Steer{In: s, To: c.RPS})
		}
	}
	return p
}

// patience has devices ask for the address of a neighbour more often, and sooner again, than the three times with a second
// between them that the kernel does: with a tenth of all packets lost, one in a thousand neighbours would not be found
// otherwise, and many a first packet would be seconds late.
func (p Plan) patience(family result.Family) []Op {
	version := byFamily(family, "ipv4", "ipv6")
	var ops []Op
	seen := map[Device]bool{}
	for _, a := range Of[Address](p.Ops) {
		if seen[a.Device] {
			continue
		}
		seen[a.Device] = true
		for _, v := range []struct{ name, value string }{{"retrans_time_ms", "50"}, {"mcast_solicit", "60"}, {"ucast_solicit", "60"}} {
			ops = append(ops, Sysctl{In: a.In, Name: "net/" + version + "/neigh/" + a.Name + "/" + v.name, Value: v.value})
		}
	}
	return ops
}

// What makes bridges of a namespace hand packets to the firewall of IP, for each version.
const (
	bridgeNetfilter4 = "net.bridge.bridge-nf-call-iptables"
	bridgeNetfilter6 = "net.bridge.bridge-nf-call-ip6tables"
)

// BridgeNetfilterSetting is the kernel setting by which bridges of a namespace hand packets of a version of IP to its firewall.
func BridgeNetfilterSetting(f result.Family) string {
	return byFamily(f, bridgeNetfilter4, bridgeNetfilter6)
}

// FirewallBridges is the setting by which bridges of a namespace hand packets of IPv4 to its firewall.
func FirewallBridges(in Space) Sysctl {
	return Sysctl{In: in, Name: bridgeNetfilter4, Value: "1"}
}

// firewalled has the bridges of nodes hand their packets to the firewall of IP: if the conditions ask for it, or if the systems do that
// the network stands for and the conditions don't speak against it. In these systems, too, a kernel without it goes on without.
func (n Network) firewalled(p Plan, c result.Conditions) Plan {
	asked := c.BridgeNetfilter == result.On
	if !asked && (c.BridgeNetfilter == result.Off || !n.BridgeNetfilter) {
		return p
	}
	bridged := p.Observed || slices.ContainsFunc(Of[Bridge](p.Ops), func(b Bridge) bool { return b.Role == RoleBridge })
	p.Settings = slices.Clone(p.Settings)
	for k, s := range p.Settings {
		if bridged && s.In.Kind == NodeSpace && (s.Name == bridgeNetfilter4 || s.Name == bridgeNetfilter6) {
			p.Settings[k].Value, p.Settings[k].Optional = "1", !asked
		}
	}
	return p
}

const (
	// MaxLinks is the most links that may join a node to the switch.
	MaxLinks = 16
	// MaxDelay is the longest delay of a link.
	MaxDelay = 10 * time.Second
)

// Kinds of MAC addresses of a bond's links: the first of MaxLinks each.
const (
	macLink       byte = 0x20
	macSwitchLink byte = macLink + MaxLinks
)

// The bonding modes, as the kernel names them.
const (
	ModeLACP         = "802.3ad"
	ModeXOR          = "balance-xor"
	ModeRoundRobin   = "balance-rr"
	ModeActiveBackup = "active-backup"
	ModeBroadcast    = "broadcast"
	ModeTLB          = "balance-tlb"
	ModeALB          = "balance-alb"
)

// BondModes lists the modes of bonds.
func BondModes() []string {
	return []string{ModeLACP, ModeXOR, ModeRoundRobin, ModeActiveBackup, ModeBroadcast, ModeTLB, ModeALB}
}

// BondHashes lists what a bond can choose the link of a packet by: the kernel's xmit_hash_policy.
func BondHashes() []string {
	return []string{"layer2", "layer2+3", "layer3+4", "encap2+3", "encap3+4", "vlan+srcmac"}
}

// checkLinks tells what is wrong with the links that conditions ask for.
func checkLinks(c result.Conditions) error {
	switch {
	case c.LinkDelay < 0 || c.LinkDelay > MaxDelay:
		return fmt.Errorf("a link delay of %s: need 0 to %s", c.LinkDelay, MaxDelay)
	case !(c.LinkLoss >= 0 && c.LinkLoss < 1): // also what is not a number
		return fmt.Errorf("a link loss of %g: need 0 or more and less than 1", c.LinkLoss)
	case c.LinkCount < 0 || c.LinkCount > MaxLinks:
		return fmt.Errorf("%d links of each node: need 1 to %d", c.LinkCount, MaxLinks)
	case c.BondMode != "" && !slices.Contains(BondModes(), c.BondMode):
		return fmt.Errorf("an unknown bond mode %q: known are %s", c.BondMode, strings.Join(BondModes(), ", "))
	case c.BondHash != "" && !slices.Contains(BondHashes(), c.BondHash):
		return fmt.Errorf("an unknown xmit_hash_policy %q: known are %s", c.BondHash, strings.Join(BondHashes(), ", "))
	}
	if _, err := result.ParseNodeLinks(c.NodeLinks); err != nil {
		return fmt.Errorf("links of single nodes: %w", err)
	}
	return nil
}

// underlayPort joins a device to the underlay switch as its node is joined, by one link or by a bond of several. The index is the port's own.
func (d *draft) underlayPort(dev Device, addr MAC, switchEnd string, index, node int) {
	near := End{Device: dev, Role: RolePort, MAC: addr}
	far := End{Device: Device{InSwitch(), switchEnd}, Role: RoleSwitchPort, MAC: mac(macSwitchPort, index)}
	link := d.t.linkOf(node)
	if link.Count > 1 {
		d.bondedPort(near, far, index, link)
		return
	}
	d.under(Veth{A: near, B: far, MTU: d.t.MTU}, Enslave{Device: far.Device, Bridge: switchDev})
	d.limit(near.Device, far.Device, link)
}

// linkOf is what joins a node to the switch.
func (t Topology) linkOf(node int) result.NodeLink {
	c := t.Conditions
	c.LinkRate = t.Rate
	return c.LinkOf(node)
}

// limit holds a link to its rate in both directions. What delays and loses packets stands on the near side alone, so
// that each way between two nodes meets it once.
func (d *draft) limit(near, far Device, link result.NodeLink) {
	loss := d.t.Conditions.LinkLoss
	impaired := link.Delay > 0 || loss > 0
	if impaired {
		d.under(Impair{Device: near, Delay: link.Delay, Loss: loss})
	}
	if link.Rate > 0 {
		d.under(Shape{Device: near, Rate: link.Rate, Impaired: impaired}, Shape{Device: far, Rate: link.Rate})
	}
}

// bondedPort joins a port to the switch by several links. The bond has the port's name, and the switch's end that by which
// the switch knows it. Each link has the rate, delay and loss.
func (d *draft) bondedPort(near, far End, index int, link result.NodeLink) {
	c := d.t.Conditions
	ours := Bond{Device: near.Device, Role: near.Role, MAC: near.MAC, MTU: d.t.MTU, Mode: c.BondMode, Hash: c.BondHash}
	theirs := Bond{Device: far.Device, Role: far.Role, MAC: far.MAC, MTU: d.t.MTU, Hash: c.BondHash}
	for k := range link.Count {
		a, b := Device{near.In, near.Name + "p" + strconv.Itoa(k)}, Device{far.In, far.Name + "p" + strconv.Itoa(k)}
		d.under(Veth{
			A:   End{Device: a, Role: RoleLink, MAC: d.t.linkMAC(index, k)},
			B:   End{Device: b, Role: RoleLink, MAC: mac(macSwitchLink+byte(k), index)},
			MTU: d.t.MTU,
		})
		ours.Links, theirs.Links = append(ours.Links, a.Name), append(theirs.Links, b.Name)
	}
	d.under(ours)
	var aggregates bool
	if theirs.Mode, aggregates = switchMode(ours.Mode); aggregates {
		d.under(theirs, Enslave{Device: far.Device, Bridge: switchDev})
	}
	for k, b := range theirs.Members() {
		if !aggregates {
			d.under(Enslave{Device: b, Bridge: switchDev})
		}
		d.limit(ours.Members()[k], b, link)
	}
}

// switchMode is the mode of the switch's bond for a node's mode, and false where the switch has none, since the mode works
// with any switch: its links then are ports like others. A node that sends everything on all links meets a switch that
// takes what comes by one of them, else packets would arrive several times.
func switchMode(node string) (mode string, aggregates bool) {
	switch node {
	case ModeLACP, ModeXOR, ModeRoundRobin:
		return node, true
	case ModeBroadcast:
		return ModeActiveBackup, true
	}
	return "", false
}

// Bonds lists the bonds of a plan. What a bond has sent and received is what its links have.
func (p Plan) Bonds() []Bond { return Of[Bond](p.all()) }

// NodeWay says how processes in a node's own namespace reach pods (result.Conditions.From).
type NodeWay int

const (
	// NoNodeWay is a network in which nodes don't speak to pods, or not in a way that can be proved.
	NoNodeWay NodeWay = iota
	// NodeItself is a network whose pods are in their nodes' namespaces already.
	NodeItself
	// NodeRoutes has a node reach pods by its routes, from its address on the underlay.
	NodeRoutes
	// NodeTunnels has a node reach pods by its routes, from its address on the tunnel.
	NodeTunnels
	// NodeBridges has a node reach pods over the bridge that they are on, from its address on the underlay, which the bridge has.
	NodeBridges
)

// fromNode puts the first pod, which is the client of each cell, into its node's namespace, as the conditions ask for. What the
// network makes for pods is there still, but no process is in the first of them.
func (n Network) fromNode(p Plan, t Topology) (Plan, error) {
	if t.Conditions.From != result.FromNode {
		return p, nil
	}
	if why := n.againstNode(p, t); why != "" {
		return p, &NotPossibleError{Network: n.Name, Condition: "from=" + result.FromNode, Why: why}
	}
	if n.FromNode == NodeItself {
		return p, nil
	}
	client := p.Pods[0]
	at := t.Nodes[client.Node]
	p.left = []Space{client.In}
	p.Pods = slices.Clone(p.Pods)
	p.Pods[0] = Endpoint{In: InNode(client.Node), Address: at.Address.Addr(), Node: client.Node, Device: at.Device}
	switch n.FromNode {
	case NodeTunnels:
		p.Pods[0].Address = at.tunnelEnd()
		if far := slices.IndexFunc(p.Pods, func(e Endpoint) bool { return e.Node != client.Node }); far >= 0 {
			// What is sent to a virtual address takes its source from here, before it is known where that leads.
			p.Pods[0].Device = n.pastFirstPod(p, p.path)(0, far, AnyProtocol)[0].Name
		}
	case NodeBridges:
		p.Pods[0].Device = bridgeDev
		p.Ops = append(slices.Clip(p.Ops), onOneLink(t)...)
	}
	p.path = n.pastFirstPod(p, p.path)
	return p, nil
}

// againstNode says what keeps a client out of its node's namespace; "" is nothing.
func (n Network) againstNode(p Plan, t Topology) string {
	c := t.Conditions
	switch {
	case n.FromNode == NoNodeWay:
		return "its nodes have no way of their own to pods"
	case n.FromNode == NodeItself:
		return ""
	case t.PodsOutlive:
		return "networks are swapped beneath pods, and a node's namespace goes with its network"
	case c.Encryption != "" || n.Encryption != "":
		return "only what pods send is encrypted"
	case n.FromNode == NodeTunnels && !p.gives(t.Nodes[p.Pods[0].Node].tunnelEnd()):
		return "its tunnels have no address here from which a node could speak to pods"
	}
	return ""
}

// tunnelEnd is the address that a node's tunnel has where it has one: the first of the node's pod prefix.
func (n Node) tunnelEnd() netip.Addr { return n.PodPrefix.Masked().Addr() }

// gives tells whether some device gets an address.
func (p Plan) gives(address netip.Addr) bool {
	return slices.ContainsFunc(Of[Address](p.Ops), func(a Address) bool { return a.Prefix.Addr() == address })
}

// onOneLink leads from nodes to pods and back on the link that all of them are on: their addresses are of two ranges.
func onOneLink(t Topology) []Op {
	var ops []Op
	for i := range t.Nodes {
		ops = append(ops, Route{Device: Device{InNode(i), bridgeDev}, To: allPods(t)})
	}
	for j := range t.Pods {
		ops = append(ops, Route{Device: Device{InPod(j), podDevice}, To: allNodes(t)})
	}
	return ops
}

// pastFirstPod are the ways of a plan whose first pod is in its node's namespace, made of the ways between pods: without the
// devices by which that pod and its node reach each other.
func (n Network) pastFirstPod(p Plan, pods func(from, to int, protocol Protocol) []Hop) func(from, to int, protocol Protocol) []Hop {
	node := p.Pods[0].In
	return func(from, to int, protocol Protocol) []Hop {
		switch {
		case from != 0 && to != 0:
			return pods(from, to, protocol)
		case from == 0 && p.SameNode(from, to):
			return n.downFromNode(p, to)
		case p.SameNode(from, to):
			return turned(n.downFromNode(p, from))
		case from == 0:
			hops := pods(from, to, protocol)
			first := slices.IndexFunc(hops, func(h Hop) bool { return h.In == node && h.Sends })
			return append(n.intoBridge(node), hops[first:]...)
		}
		hops := slices.Clone(pods(from, to, protocol))
		slices.Reverse(hops)
		last := slices.IndexFunc(hops, func(h Hop) bool { return h.In == node && !h.Sends })
		hops = hops[last:]
		slices.Reverse(hops)
		return append(hops, turned(n.intoBridge(node))...)
	}
}

// intoBridge is how a node's own packets get to other nodes where its address is on the bridge of its pods.
func (n Network) intoBridge(node Space) []Hop {
	if n.FromNode != NodeBridges {
		return nil
	}
	return []Hop{sends(Device{node, bridgeDev}, RoleBridge)}
}

// downFromNode is the way from a node to one of its own pods: the node hands the packet over itself, whatever programs do between
// pods.
func (n Network) downFromNode(p Plan, to int) []Hop {
	node := p.Pods[0].In
	var hops []Hop
	if slices.ContainsFunc(Of[Bridge](p.Ops), func(b Bridge) bool { return b.Device == Device{node, bridgeDev} }) {
		hops = append(hops, sends(Device{node, bridgeDev}, RoleBridge))
	}
	return append(hops, sends(Device{node, nodeEndName(to)}, RoleNodeEnd), receives(Device{p.Pods[to].In, p.Pods[to].Device}, RolePod))
}
