package result

import (
	"cmp"
	"time"

	"netdelta/unit"
)

// Conditions are what a network is measured under: the links between the nodes, the devices' offloads, and what pods and nodes do with
// packets apart from moving them. The zero value of a field leaves the testbed as it
// is. Conditions belong to a setting: the baseline is measured under the same ones.
type Conditions struct {
	// LinkRate limits each direction of each underlay link; zero takes the testbed's.
	LinkRate unit.BitsPerSecond `json:"link_rate,omitempty"`
	// LinkDelay is how much later a packet arrives on one way between two nodes: a round trip gets twice as much.
	LinkDelay time.Duration `json:"link_delay_ns,omitempty"`
	// LinkLoss is the share of packets that get lost on one way between two nodes, from 0 to 1.
	LinkLoss float64 `json:"link_loss,omitempty"`
	// LinkCount is how many links join each node to the switch, as one bond; zero and one are a single plain link.
	LinkCount int `json:"link_count,omitempty"`
	// NodeLinks are the links of nodes that are not joined as all others are: "node0:2x25Gbit/s", as ParseNodeLinks reads them.
	NodeLinks string `json:"node_links,omitempty"`
	// BondMode is the bond's mode as the kernel names it ("802.3ad"); BondHash its xmit_hash_policy ("layer3+4").
	BondMode string `json:"bond_mode,omitempty"`
	BondHash string `json:"bond_xmit_hash_policy,omitempty"`
	// TSO, GSO, GRO and LRO switch the offloads of all devices: "on", "off".
	TSO Switch `json:"offload_tso,omitempty"`
	GSO Switch `json:"offload_gso,omitempty"`
	GRO Switch `json:"offload_gro,omitempty"`
	LRO Switch `json:"offload_lro,omitempty"`
	// RPS spreads received packets over the processors.
	RPS Switch `json:"rps,omitempty"`
	// Policy is what guards the pods ("none", "iptables", "nftables", "ebpf", "kubernetes"), with PolicyRules rules that don't
	// match before the one that lets the traffic in. Of "kubernetes" they are NetworkPolicy objects, the one that lets it in
	// among them, and PolicyPods more pods are among those that they let in.
	Policy      string `json:"policy,omitempty"`
	PolicyRules int    `json:"policy_rules,omitempty"`
	PolicyPods  int    `json:"policy_pods,omitempty"`
	// Service is how a client reaches the server: "pod", its own address, or through a virtual address that is resolved by
	// "iptables", "nftables", "ipvs" or "ebpf", one of Services.
	Service  string `json:"service,omitempty"`
	Services int    `json:"services,omitempty"`
	// From is where the client is: in its "pod", or in the namespace of its "node".
	From string `json:"from,omitempty"`
	// Encryption is what protects packets between nodes: "none", "wireguard", "ipsec".
	Encryption string `json:"encryption,omitempty"`
	// QoS is the class that pods run in: "guaranteed", with processors of their own, or "best-effort", with neighbours that
	// compete for them.
	QoS string `json:"qos,omitempty"`
}

// Switch is a setting that can be on, off, or left as it is ("").
type Switch string

// The positions of a switch.
const (
	On  Switch = "on"
	Off Switch = "off"
)

// The levels of Conditions that have names.
const (
	None             = "none" // of policy and encryption
	PolicyIPTables   = "iptables"
	PolicyNFTables   = "nftables"
	PolicyEBPF       = "ebpf"
	PolicyKubernetes = "kubernetes"
	FromPod          = "pod"
	FromNode         = "node"
	ServicePod       = "pod"
	ServiceIPTables  = "iptables"
	ServiceNFTables  = "nftables"
	ServiceIPVS      = "ipvs"
	ServiceEBPF      = "ebpf"
	WireGuard        = "wireguard"
	IPsec            = "ipsec"
	Guaranteed       = "guaranteed"
	BestEffort       = "best-effort"
)

// Defaults of conditions whose companions are given.
const (
	DefaultPolicyRules = 10
	DefaultServices    = 10
	DefaultBondMode    = "802.3ad"
	DefaultBondHash    = "layer2" // the kernel's own
)

// Plain are the conditions without what means nothing given the rest (the rules of no policy), and with the defaults of
// what is asked for but not given: two combinations of levels that mean the same are the same.
func (c Conditions) Plain() Conditions {
	c = c.plainLinks()
	if c.Policy == None || c.Policy == "" {
		c.Policy, c.PolicyRules = "", 0
	} else {
		c.PolicyRules = cmp.Or(c.PolicyRules, DefaultPolicyRules)
	}
	if c.Policy != PolicyKubernetes {
		c.PolicyPods = 0
	}
	if c.Service == ServicePod || c.Service == "" {
		c.Service, c.Services = "", 0
	} else {
		c.Services = cmp.Or(c.Services, DefaultServices)
	}
	if c.From == FromPod {
		c.From = ""
	}
	if c.Encryption == None {
		c.Encryption = ""
	}
	return c
}
