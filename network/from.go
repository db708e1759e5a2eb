package network

import (
	"net/netip"
	"slices"

	"netdelta/result"
)

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
