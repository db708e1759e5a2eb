package network

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"

	"netdelta/result"
	"netdelta/unit"
)

// draft is a plan in the making, with the parts that networks share.
type draft struct {
	t    Topology
	plan Plan
	// mtu is the mtu of the pods' devices.
	mtu unit.Bytes
}

// Kinds of pinned MAC addresses. MACs decide hash buckets in bridges and bonds, so a random one would make each build of a
// network a little different.
const (
	macPod byte = iota + 1
	macPort
	macNodeEnd
	macSwitch
	macSwitchPort
	macBridge
	macEncapsulation
)

// mac is a locally administered address that belongs to one role and index.
func mac(kind byte, index int) MAC {
	return MAC{0x02, 0x6e, 0x64, kind, byte(index >> 8), byte(index)}
}

const (
	podDevice = "eth0"
	bridgeDev = "br0"
	switchDev = "sw0"
	vxlanDev  = "vxlan0"
)

// newDraft starts a plan: quiet namespaces, and nodes that are joined by an underlay. Where the node's address goes is left
// to the network, since a bridge takes it over from the port.
func newDraft(t Topology, overhead unit.Bytes) *draft {
	wire := t.wire()
	d := &draft{t: wire, mtu: t.MTU - overhead}
	d.quiet(InSwitch())
	d.under(Bridge{Device: Device{InSwitch(), switchDev}, Role: RoleSwitch, MAC: mac(macSwitch, 0), MTU: wire.MTU})
	for i, n := range wire.Nodes {
		d.quiet(InNode(i))
		d.underlayPort(Device{InNode(i), n.Device}, wire.wireMAC(i), n.Name, i, i)
		d.plan.Nodes = append(d.plan.Nodes, t.Nodes[i].Address.Addr())
	}
	d.t = t
	if len(t.Nodes) > 0 && t.Nodes[0].Device == wireGuardDev && t.outer != nil {
		d.wireGuard()
	}
	for j, p := range t.Pods {
		d.plan.Pods = append(d.plan.Pods, Endpoint{In: InPod(j), Address: p.Address, Node: p.Node, Device: podDevice})
	}
	return d
}

// drafted makes a network's Build: a draft over a topology, with what encapsulation adds (nil is nothing), is made a plan.
func drafted(overhead func(result.Family) unit.Bytes, build func(*draft) Plan) func(Topology) Plan {
	return func(t Topology) Plan {
		if overhead == nil {
			return build(newDraft(t, 0))
		}
		return build(newDraft(t, overhead(t.Family)))
	}
}

// eachNode takes the steps for each node.
func (d *draft) eachNode(steps ...func(node int)) {
	for i := range d.t.Nodes {
		for _, step := range steps {
			step(i)
		}
	}
}

// eachPod takes the steps for each pod.
func (d *draft) eachPod(steps ...func(pod int)) {
	for j := range d.t.Pods {
		for _, step := range steps {
			step(j)
		}
	}
}

// forPods takes a step for each pod of a node.
func (d *draft) forPods(step func(pod int)) func(node int) {
	return func(node int) {
		for _, j := range d.t.podsOf(node) {
			step(j)
		}
	}
}

// portOf is what a node has for its underlay port.
func (d *draft) portOf(node int) Device { return Device{InNode(node), d.t.Nodes[node].Device} }

func (d *draft) under(ops ...Op) { d.plan.Underlay = append(d.plan.Underlay, ops...) }
func (d *draft) add(ops ...Op)   { d.plan.Ops = append(d.plan.Ops, ops...) }

// quiet sets what each namespace has to have in order that nothing but the measured traffic moves and that settings of the
// machine at large don't leak in: new namespaces take some of them from the first one.
func (d *draft) quiet(in Space) {
	set := func(name, value string, optional bool) {
		d.plan.Settings = append(d.plan.Settings, Sysctl{In: in, Name: name, Value: value, Optional: optional})
	}
	// No duplicate address detection, no router solicitation, no multicast listener reports.
	silent := in.Kind == SwitchSpace || d.t.Family != result.IPv6
	if silent {
		set("net.ipv6.conf.all.disable_ipv6", "1", true)
		set("net.ipv6.conf.default.disable_ipv6", "1", true)
	}
	// A bridge must not hand its frames to the firewall unasked, as it does in a new namespace once br_netfilter is loaded.
	set(bridgeNetfilter4, "0", true)
	set(bridgeNetfilter6, "0", true)
	set("net.bridge.bridge-nf-call-arptables", "0", true)
	if in.Kind == SwitchSpace {
		return
	}
	if silent {
		quiet4(set)
	} else {
		quiet6(set)
	}
	set(forwardingOf(d.t.Family), "0", false)
	// One connection must not inherit the congestion window of another that went before.
	set("net.ipv4.tcp_no_metrics_save", "1", true)
	// A client must not take by chance the port that a server is about to listen on.
	set("net.ipv4.ip_local_reserved_ports", d.serverPorts(in), false)
}

// quiet4 sets what IPv4 alone needs.
func quiet4(set func(name, value string, optional bool)) {
	for _, conf := range []string{"all", "default"} {
		set("net.ipv4.conf."+conf+".rp_filter", "0", false)
		set("net.ipv4.conf."+conf+".send_redirects", "0", false)
		set("net.ipv4.conf."+conf+".accept_redirects", "0", false)
	}
}

// quiet6 sets what IPv6 alone needs.
func quiet6(set func(name, value string, optional bool)) {
	for _, conf := range []string{"all", "default"} {
		// Addresses can be used at once, and none comes by itself: neither from routers nor made of a MAC.
		set("net.ipv6.conf."+conf+".accept_dad", "0", false)
		set("net.ipv6.conf."+conf+".accept_ra", "0", false)
		set("net.ipv6.conf."+conf+".router_solicitations", "0", false)
		set("net.ipv6.conf."+conf+".addr_gen_mode", "1", false)
		set("net.ipv6.conf."+conf+".accept_redirects", "0", false)
		// Reports of the groups that an address belongs to can't be turned off. In milliseconds: they follow each other at once,
		// and some tens of milliseconds later all is quiet.
		set("net.ipv6.conf."+conf+".mldv1_unsolicited_report_interval", "1", false)
		set("net.ipv6.conf."+conf+".mldv2_unsolicited_report_interval", "1", false)
	}
	// Only a device that is given an address speaks IPv6: ports of bridges have nothing to say.
	set("net.ipv6.conf.all.disable_ipv6", "0", false)
	set("net.ipv6.conf.default.disable_ipv6", "1", false)
}

// forwardingOf is the setting that makes a namespace a router.
func forwardingOf(f result.Family) string {
	return byFamily(f, "net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding")
}

// serverPorts is the range of the servers' ports of all pods that may be in a namespace.
func (d *draft) serverPorts(in Space) string {
	if in.Kind == PodSpace {
		p := d.t.Pods[in.Index]
		return fmt.Sprintf("%d-%d", p.FirstPort, p.LastPort)
	}
	var first, last uint16
	for _, j := range d.t.podsOf(in.Index) {
		if p := d.t.Pods[j]; first == 0 || p.FirstPort < first {
			first = p.FirstPort
		}
		last = max(last, d.t.Pods[j].LastPort)
	}
	if first == 0 {
		return ""
	}
	return fmt.Sprintf("%d-%d", first, last)
}

// forwarding makes a node a router.
func (d *draft) forwarding(node int) {
	for k, s := range d.plan.Settings {
		if s.In == InNode(node) && s.Name == forwardingOf(d.t.Family) {
			d.plan.Settings[k].Value = "1"
		}
	}
}

// address gives a device an address. Under IPv6 it gets one for its link too: from there routers look for their neighbours,
// and all devices ask a neighbour that has been silent for a while whether it is still there.
func (d *draft) address(dev Device, own MAC, prefix netip.Prefix) {
	if d.t.Family == result.IPv6 {
		d.add(Address{Device: dev, Prefix: linkLocal(own)})
	}
	d.add(Address{Device: dev, Prefix: prefix})
}

// nodeAddress gives the node's address to its underlay device.
func (d *draft) nodeAddress(node int) {
	n := d.t.Nodes[node]
	d.address(d.portOf(node), d.t.portMAC(node), n.Address)
}

// gatewayAddress gives the node's bridge the address that its pods know it by.
func (d *draft) gatewayAddress(node int) {
	n := d.t.Nodes[node]
	d.address(Device{InNode(node), bridgeDev}, mac(macBridge, node), netip.PrefixFrom(n.Gateway(), n.PodPrefix.Bits()))
}

// nodeEnd is the node's end of a pod's veth.
func (d *draft) nodeEnd(pod int) Device {
	return Device{InNode(d.t.Pods[pod].Node), nodeEndName(pod)}
}

func nodeEndName(pod int) string { return "veth" + strconv.Itoa(pod) }

func (d *draft) podDevice(pod int) Device { return Device{InPod(pod), podDevice} }

// podVeth joins a pod to its node. nodeMAC is the MAC of the node's end.
func (d *draft) podVeth(pod int, nodeMAC MAC) {
	d.quiet(InPod(pod))
	d.add(Veth{
		A:   End{Device: d.podDevice(pod), Role: RolePod, MAC: mac(macPod, pod)},
		B:   End{Device: d.nodeEnd(pod), Role: RoleNodeEnd, MAC: nodeMAC},
		MTU: d.mtu,
	})
}

// nodeBridge makes a bridge on a node.
func (d *draft) nodeBridge(node int) {
	d.add(Bridge{Device: Device{InNode(node), bridgeDev}, Role: RoleBridge, MAC: mac(macBridge, node), MTU: d.mtu})
}

// bridgedPods joins the pods of a node to its bridge.
func (d *draft) bridgedPods(node int) {
	for _, j := range d.t.podsOf(node) {
		d.podVeth(j, mac(macNodeEnd, j))
		d.add(Enslave{Device: d.nodeEnd(j), Bridge: bridgeDev})
	}
}

// onePrefix gives a pod its address with all other pods on its link.
func (d *draft) onePrefix(pod int) {
	d.address(d.podDevice(pod), mac(macPod, pod), netip.PrefixFrom(d.t.Pods[pod].Address, podBits(d.t.Family)))
}

// behindGateway gives a pod its address with the pods of its node on its link, and its node as the way to all others.
func (d *draft) behindGateway(pod int) {
	n := d.t.Nodes[d.t.Pods[pod].Node]
	dev := d.podDevice(pod)
	d.address(dev, mac(macPod, pod), netip.PrefixFrom(d.t.Pods[pod].Address, n.PodPrefix.Bits()))
	d.add(Route{Device: dev, To: everywhere(d.t.Family), Via: n.Gateway()})
}

// finish hands the plan over with its paths: up lists the hops from a pod to where its node decides, leave the hops from there
// to another node. A packet meets the same devices on the way in as on the way out, in reverse.
func (d *draft) finish(up func(pod int) []Hop, leave func(node, other int) []Hop) Plan {
	return d.finishWays(up, up, leave)
}

// finishWays is finish for networks whose packets reach a pod by other hops: the reverse of down.
func (d *draft) finishWays(up, down func(pod int) []Hop, leave func(node, other int) []Hop) Plan {
	t := d.t
	d.plan.path = func(from, to int, _ Protocol) []Hop {
		hops := up(from)
		if a, b := t.Pods[from].Node, t.Pods[to].Node; a != b {
			hops = append(hops, leave(a, b)...)
			hops = append(hops, turned(leave(b, a))...)
		}
		return append(hops, turned(down(to))...)
	}
	return d.plan
}

func sends(d Device, r Role) Hop    { return Hop{Device: d, Role: r, Sends: true} }
func receives(d Device, r Role) Hop { return Hop{Device: d, Role: r} }

// turned is the way of the answer.
func turned(hops []Hop) []Hop {
	back := slices.Clone(hops)
	slices.Reverse(back)
	for i := range back {
		back[i].Sends = !back[i].Sends
	}
	return back
}

// veth leads out of a pod by its veth.
func (d *draft) veth(pod int) []Hop {
	return []Hop{sends(d.podDevice(pod), RolePod), receives(d.nodeEnd(pod), RoleNodeEnd)}
}

// device leads out of a pod by its only device.
func (d *draft) device(pod int) []Hop { return []Hop{sends(d.podDevice(pod), RolePod)} }

// port leads out of a node by its underlay port, nothing past it.
func (d *draft) port(node, _ int) []Hop { return []Hop{sends(d.portOf(node), RolePort)} }
func (d *draft) nothing(_, _ int) []Hop { return nil }

// tunnel leads out of a node by the tunnel device that name gives for another node, and then by its port.
func (d *draft) tunnel(name func(other int) string) func(node, other int) []Hop {
	return func(node, other int) []Hop {
		out := sends(d.portOf(node), RolePort)
		out.Encapsulated = true
		return []Hop{sends(Device{InNode(node), name(other)}, RoleEncapsulation), out}
	}
}

// throughBridge passes the node's bridge as a device, since the node routes.
func (d *draft) throughBridge(leave func(node, other int) []Hop) func(node, other int) []Hop {
	return func(node, other int) []Hop {
		return append([]Hop{receives(Device{InNode(node), bridgeDev}, RoleBridge)}, leave(node, other)...)
	}
}
