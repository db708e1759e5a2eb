package network

import (
	"net/netip"

	"netdelta/unit"
)

// Topology is what a network is planned over: the nodes with their underlay, and the pods on them.
type Topology struct {
	Nodes []Node
	Pods  []Pod
	// MTU of the underlay links.
	MTU unit.Bytes
	// PodsOutlive says that pods have namespaces of their own that outlive the network (live swap). Without it a network
	// may place a pod in its node's namespace, as host networking does.
	PodsOutlive bool
}

// Node is a host of the topology.
type Node struct {
	Name string
	// Device is the node's underlay device, Address its address there, Gateway prefix length in Prefix.
	Device  string
	Address netip.Prefix
	// PodPrefix holds the addresses of this node's pods.
	PodPrefix netip.Prefix
}

// Pod is an endpoint with a fixed address on one node.
type Pod struct {
	Name    string
	Node    int // index into Topology.Nodes
	Address netip.Addr
	// Ports is the range of ports on which servers of this pod listen; no two pods of a node share one, so that a
	// network may publish them on the node's address unchanged.
	FirstPort, LastPort uint16
}
