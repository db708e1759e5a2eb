// Package survey finds out what a Kubernetes cluster is made of and what a run needs of it: versions, nodes and their clocks, the
// network plugin and its mode, how services are reached, and what the user may do. Look collects facts, with the fewest rights
// possible: what can't be read is named, with the right that it takes. Judge says what the facts mean, without requests. What the
// cluster says is passed on as it is: reports clean it before they print it.
package survey

import (
	"time"

	"netdelta/network"
	"netdelta/testbed"
	"netdelta/testbed/kube"
)

// Survey is what was found in a cluster. It is plain data: the same survey is judged alike anywhere.
type Survey struct {
	// Cluster is the kubeconfig's context.
	Cluster string `json:"cluster"`
	// Version is the API server's: "v1.34.4".
	Version string `json:"version"`
	User    User   `json:"user"`
	// NodeAgent says that runs are to have node agents.
	NodeAgent bool `json:"node_agent"`
	// Clock is how far the API server's clock is ahead of this machine's; nil if unknown.
	Clock *Offset `json:"clock,omitempty"`
	// Nodes are ordered by name.
	Nodes []Node `json:"nodes"`
	// Devices says that Inspect was asked for the devices of nodes.
	Devices   bool      `json:"devices"`
	Network   Network   `json:"network"`
	Services  Services  `json:"services"`
	Secondary Secondary `json:"secondary"`
	Namespace Namespace `json:"namespace"`
	Rights    []Right   `json:"rights"`
	// Asks is what each pod of a run asks for.
	Asks Asks `json:"asks"`
	// Admission is how the cluster takes the pods of a run.
	Admission []Admission `json:"admission"`
	// BestEffort and Pods are how many pods outside of kube-system ask for no processor and no memory, and how many there are; -1
	// where pods can't be listed.
	BestEffort int `json:"best_effort"`
	Pods       int `json:"pods"`
	// Tried is how many ways from a pod of one node to a pod of another were tried, and Broken what was wrong with some.
	Tried  int      `json:"tried,omitempty"`
	Broken []Broken `json:"broken,omitempty"`
	// Gaps are what could not be read.
	Gaps []Gap `json:"gaps,omitempty"`
}

// Broken is what keeps packets from getting from pod to pod, and what to do.
type Broken struct {
	Says string `json:"says"`
	Fix  string `json:"fix"`
}

// User is who asks, as the API server sees it.
type User struct {
	Name   string   `json:"name"` // "" where the API server does not tell
	Groups []string `json:"groups,omitempty"`
}

// Offset is how far one clock is ahead of another: somewhere between Low and High, both in nanoseconds; negative is behind.
type Offset struct {
	Low  time.Duration `json:"low_ns"`
	High time.Duration `json:"high_ns"`
	// By says how it was found out.
	By string `json:"by"`
}

// Gap is something that could not be read.
type Gap struct {
	What string `json:"what"` // "the clocks of nodes"
	// Right is what it takes: "list leases in kube-node-lease"; "" where it is not a matter of rights.
	Right string `json:"right,omitempty"`
	// Reason is the cluster's, where it is not a matter of rights.
	Reason string `json:"reason,omitempty"`
}

// Node is one of the cluster's.
type Node struct {
	Name    string `json:"name"`
	Kubelet string `json:"kubelet"`
	Kernel  string `json:"kernel"`
	OS      string `json:"os"`
	Runtime string `json:"runtime"`
	Zone    string `json:"zone,omitempty"`
	Ready   bool   `json:"ready"`
	// Unready is the cluster's reason where it is not ready.
	Unready string `json:"unready,omitempty"`
	// Shut says why no pods of a run are scheduled there: cordoned, or a taint; "" where they are.
	Shut string `json:"shut,omitempty"`
	// Addresses are its internal ones; PodRanges those that its pods' addresses are from.
	Addresses []string `json:"addresses"`
	PodRanges []string `json:"pod_ranges,omitempty"`
	// MilliCPU is the processor time that pods can have, in thousandths of a processor, and FreeMilliCPU what of it no pod has asked
	// for yet; -1 where pods can't be listed.
	MilliCPU     int64 `json:"milli_cpu"`
	FreeMilliCPU int64 `json:"free_milli_cpu"`
	// Clock is how far its clock is ahead of the API server's; nil if unknown.
	Clock *Offset `json:"clock,omitempty"`
	// Resources are what it has apart from processors and memory: virtual functions of network cards, by name.
	Resources map[string]int64 `json:"resources,omitempty"`
	// PodMTU is the MTU of the pods there in bytes, as a pod that was tried says; 0 where none was.
	PodMTU int `json:"pod_mtu,omitempty"`
	// Devices are in its own namespace, where Inspect could see them.
	Devices []testbed.Interface `json:"devices,omitempty"`
}

// Network is how pods reach each other.
type Network struct {
	// Plugin is "flannel", "calico" ...; "" if unknown.
	Plugin string `json:"plugin"`
	// Mode is the plugin's own word: "vxlan", "host-gw", "native"; "" if unknown.
	Mode string `json:"mode,omitempty"`
	// Encapsulation is what packets between nodes travel in: "none", "vxlan", "ipip", "geneve", "gre", "udp", "fou", "stt",
	// "wireguard", "ipsec"; "" if unknown.
	Encapsulation string `json:"encapsulation"`
	// OnlyAcross says that packets between nodes of one subnet are not encapsulated.
	OnlyAcross bool `json:"only_across_subnets,omitempty"`
	// Encryption is "wireguard", "ipsec", "none", or "" if unknown.
	Encryption string `json:"encryption,omitempty"`
	// MTU of pods in bytes, 0 if unknown.
	MTU int `json:"mtu,omitempty"`
	// Policies is what enforces NetworkPolicies: "calico", "cilium" ..., "none", or "" if unknown.
	Policies string `json:"policies"`
	// EBPF is "yes" or "no": whether packets are forwarded by eBPF programs; "" if unknown.
	EBPF string `json:"ebpf"`
	// ThroughStack says that packets of pods pass their node's own stack and firewall, although eBPF programs forward them.
	ThroughStack bool `json:"through_stack,omitempty"`
	// By says what it was recognised by.
	By []string `json:"by,omitempty"`
	// Doubt says why it may be otherwise; "" where the plugin itself says so.
	Doubt string `json:"doubt,omitempty"`
	// Others are further plugins whose traces were found.
	Others []string `json:"others,omitempty"`
}

// Product is the product of the catalogue that joins the pods, with the way in which packets travel between nodes of one subnet. It is
// false where none is known.
func (n Network) Product() (network.Product, bool) {
	wire := n.Encapsulation
	switch {
	case n.Encryption != "" && n.Encryption != "none":
		wire = n.Encryption
	case n.OnlyAcross:
		wire = "none"
	}
	return network.ProductOf(n.Plugin, wire)
}

// Services is how services are reached.
type Services struct {
	// Mode is "iptables", "nftables", "ipvs", "ebpf", "ovs"; "" if unknown.
	Mode string `json:"mode"`
	// By says what it was recognised by, or why it was not.
	By string `json:"by,omitempty"`
	// Count is how many services the cluster has, -1 if unknown.
	Count int `json:"count"`
}

// Secondary is what gives pods more than one network.
type Secondary struct {
	Multus bool `json:"multus"`
	// SRIOV are the names of resources that look like virtual functions of network cards.
	SRIOV []string `json:"sriov,omitempty"`
}

// Namespace is where the pods of a run are made.
type Namespace struct {
	Name string `json:"name"`
	// Missing says that it isn't there.
	Missing bool `json:"missing,omitempty"`
	// Level is the Pod Security level that is enforced: "privileged", "baseline", "restricted"; "" if unknown. A namespace without
	// a label has the cluster's, which is "privileged" unless its administrators have chosen another.
	Level string  `json:"level,omitempty"`
	Quota []Quota `json:"quota,omitempty"`
	// Limits are what LimitRanges say that matters for a run.
	Limits []Limit `json:"limits,omitempty"`
	// Denials are NetworkPolicies that keep the pods of a run from each other.
	Denials []kube.Denial `json:"denials,omitempty"`
}

// Quota is what is left of one resource: Hard - Used.
type Quota struct {
	Name     string `json:"name"`
	Resource string `json:"resource"`
	Hard     int64  `json:"hard"` // processors in thousandths, memory in bytes, all else as numbers
	Used     int64  `json:"used"`
}

// Limit is one bound of a LimitRange for a container or pod.
type Limit struct {
	Name     string `json:"name"`
	Kind     string `json:"kind"`  // "Container" or "Pod"
	Bound    string `json:"bound"` // "min", "max", "default", "defaultRequest", "maxLimitRequestRatio"
	Resource string `json:"resource"`
	Value    int64  `json:"value"` // processors in thousandths, memory in bytes; a ratio in thousandths
}

// Asks is what a pod asks for: processors in thousandths, memory in bytes.
type Asks struct {
	MilliCPU int64 `json:"milli_cpu"`
	Memory   int64 `json:"memory"`
}

// Admission is how the cluster takes one kind of pod, tried without making it.
type Admission struct {
	// Pod is which: see the constants.
	Pod string `json:"pod"`
	// Admitted says that it would be made. Where it could not be tried, Untried says why.
	Admitted bool   `json:"admitted"`
	Refusal  string `json:"refusal,omitempty"` // the cluster's words
	Untried  string `json:"untried,omitempty"`
}

// The kinds of pods that a run makes.
const (
	PodPlain     = "plain"      // meets Pod Security "restricted"
	PodHost      = "host"       // in its node's network: the baseline
	PodNodeAgent = "node-agent" // in its node's network, with NET_ADMIN and NET_RAW
)
