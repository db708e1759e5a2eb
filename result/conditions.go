package result

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
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
	// BridgeNetfilter is whether bridges of nodes hand their packets to the firewall of IP (bridge-nf-call-iptables). "" is as in the
	// systems that a network stands for.
	BridgeNetfilter Switch `json:"bridge_netfilter,omitempty"`
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

// NodeLink is what joins one node to the switch.
type NodeLink struct {
	Node int
	// Count is how many links there are: several are a bond.
	Count int
	// Rate limits each direction of each of them; zero is unlimited.
	Rate unit.BitsPerSecond
	// Delay is how much later what the node sends arrives.
	Delay time.Duration
}

// String is what ParseNodeLinks reads: "node0:2x25Gbit/s@1ms".
func (l NodeLink) String() string {
	text := fmt.Sprintf("node%d:", l.Node)
	if l.Count > 1 {
		text += strconv.Itoa(l.Count) + "x"
	}
	text += exactRate(l.Rate)
	if l.Delay > 0 {
		text += "@" + exactDuration(l.Delay)
	}
	return text
}

// ParseNodeLinks reads the links of nodes that are not joined as all others are, in the order of the nodes: NODE:[COUNTx]RATE[@DELAY],
// with a plus between nodes ("node0:2x25Gbit/s+node3:10Gbit/s@1ms"). "" and None are no such nodes. Without a delay a node has the common one.
func ParseNodeLinks(text string) ([]NodeLink, error) {
	if text == "" || text == None {
		return nil, nil
	}
	var all []NodeLink
	for one := range strings.SplitSeq(text, "+") {
		l, err := parseNodeLink(one)
		if err != nil {
			return nil, fmt.Errorf("%.60q: %w; write for example node0:2x25Gbit/s or node0:10Gbit/s@1ms, and a plus before the next node", one, err)
		}
		if slices.ContainsFunc(all, func(o NodeLink) bool { return o.Node == l.Node }) {
			return nil, fmt.Errorf("%.60q: node%d is there twice; leave one out", one, l.Node)
		}
		all = append(all, l)
	}
	slices.SortFunc(all, func(a, b NodeLink) int { return cmp.Compare(a.Node, b.Node) })
	return all, nil
}

func parseNodeLink(text string) (l NodeLink, err error) {
	name, link, found := strings.Cut(text, ":")
	number, is := strings.CutPrefix(name, "node")
	if l.Node, err = strconv.Atoi(number); !found || !is || err != nil || l.Node < 0 || strconv.Itoa(l.Node) != number {
		return l, errors.New("it does not begin with a node and a colon")
	}
	link, delay, delayed := strings.Cut(link, "@")
	if delayed {
		if l.Delay, err = time.ParseDuration(delay); err != nil || l.Delay <= 0 || l.Delay > maxLinkDelay {
			return l, fmt.Errorf("the delay is not one of up to %s", maxLinkDelay)
		}
	}
	l.Count = 1
	if count, rate, several := strings.Cut(link, "x"); several {
		link = rate
		if l.Count, err = strconv.Atoi(count); err != nil || l.Count < 1 || l.Count > maxLinkCount {
			return l, fmt.Errorf("the number of links is not one of 1 to %d", maxLinkCount)
		}
	}
	if l.Rate, err = unit.ParseRate(link); err != nil || l.Rate < minRate || l.Rate > maxRate {
		return l, fmt.Errorf("the rate is not one of %s to %s", minRate, maxRate)
	}
	return l, nil
}

// LinkOf is what joins a node to the switch: its own link where it has one, else the common one.
func (c Conditions) LinkOf(node int) NodeLink {
	all := NodeLink{Node: node, Count: max(c.LinkCount, 1), Rate: c.LinkRate, Delay: c.LinkDelay}
	links, _ := ParseNodeLinks(c.NodeLinks) // one that does not read was refused
	if i := slices.IndexFunc(links, func(l NodeLink) bool { return l.Node == node }); i >= 0 {
		own := links[i]
		own.Delay = cmp.Or(own.Delay, all.Delay)
		return own
	}
	return all
}

// SlowestLink is what joins a node that can send and receive least: no stream between two nodes is faster. Its rate is zero where
// no link has one.
func (c Conditions) SlowestLink() NodeLink {
	slowest := NodeLink{Count: max(c.LinkCount, 1), Rate: c.LinkRate, Delay: c.LinkDelay}
	links, _ := ParseNodeLinks(c.NodeLinks)
	for _, l := range links {
		if slowest.Rate == 0 || l.total() < slowest.total() {
			slowest = l
		}
	}
	return slowest
}

func (l NodeLink) total() unit.BitsPerSecond { return l.Rate * unit.BitsPerSecond(l.Count) }

// plainLinks is Plain for what joins nodes to the switch.
func (c Conditions) plainLinks() Conditions {
	bonds := c.LinkCount > 1
	if !bonds {
		c.LinkCount = 0
	}
	if links, err := ParseNodeLinks(c.NodeLinks); err == nil {
		texts := make([]string, len(links))
		for i, l := range links {
			texts[i], bonds = l.String(), bonds || l.Count > 1
		}
		c.NodeLinks = strings.Join(texts, "+")
	}
	if !bonds {
		c.BondMode, c.BondHash = "", ""
		return c
	}
	c.BondMode = cmp.Or(c.BondMode, DefaultBondMode)
	c.BondHash = cmp.Or(c.BondHash, DefaultBondHash)
	if c.BondMode != "802.3ad" && c.BondMode != "balance-xor" && c.BondMode != "balance-tlb" {
		c.BondHash = "" // other modes don't hash
	}
	return c
}
