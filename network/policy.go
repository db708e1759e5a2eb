package network

import (
	"fmt"
	"net/netip"
	"strings"

	"netdelta/result"
)

// policed guards the pods of a plan as the conditions ask for. Each pod is guarded in the namespace where its traffic ends,
// which is the same for every network, so that the same packet meets the same rules: a request meets the rules of the server's
// pod, its answer the rules of the client's. First come as many rules as asked for that no packet of a pod matches, then those that
// let in what belongs to known connections and what comes from pods, or from nodes that stand in for them. All else is
// dropped.
func policed(p Plan, t Topology) (Plan, error) {
	c := t.Conditions
	switch c.Policy {
	case "":
	case result.PolicyIPTables:
		rules := policyRules(t, c.PolicyRules)
		for _, e := range ending(p) {
			p.Ops = append(p.Ops, iptablesPolicy(e.In, t.Family, rules))
		}
	case result.PolicyNFTables:
		rules := policyRules(t, c.PolicyRules)
		for _, e := range ending(p) {
			p.Ops = append(p.Ops, Rules{In: e.In, Family: t.Family, Table: "policy", Chains: []Chain{
				{Name: "guard", Hook: Input, Drop: true, Rules: rules},
			}})
		}
	case result.PolicyEBPF:
		p.Ops = append(p.Ops, ebpfPolicy(t, p, c.PolicyRules)...)
	case result.PolicyKubernetes:
		return p, &NotPossibleError{
			Network: p.Network, Condition: "policy=" + c.Policy,
			Why: "NetworkPolicy objects are a cluster's: measure it with --testbed kubernetes, or take policy=iptables, nftables or ebpf",
		}
	default:
		return p, fmt.Errorf("plan network %s: unknown policy %q", p.Network, c.Policy)
	}
	return p, nil
}

// ending lists the first pod of each namespace where the traffic of pods ends.
func ending(p Plan) []Endpoint {
	var all []Endpoint
	known := map[Space]bool{}
	for _, e := range p.Pods {
		if !known[e.In] {
			known[e.In] = true
			all = append(all, e)
		}
	}
	return all
}

// policyRules are the rules of a guard, in their order.
func policyRules(t Topology, count int) []Rule {
	rules := append(unmatched(t.Family, count), Rule{Established: true}, Rule{From: allPods(t)}, Rule{From: allNodes(t)})
	if t.Conditions.Service != "" {
		// On lo the answer of a server behind IPVS comes from the virtual address, of a connection that is not tracked.
		rules = append(rules, Rule{From: serviceRange(t.Family)})
	}
	if t.Family == result.IPv6 {
		// Neighbours ask for each other from here (RFC 4861).
		rules = append(rules, Rule{From: netip.PrefixFrom(netip.AddrFrom16([16]byte{0: 0xfe, 1: 0x80}), 10)})
	}
	return rules
}

// allNodes is the range of the underlay's addresses.
func allNodes(t Topology) netip.Prefix { return t.Nodes[0].Address.Masked() }

// iptablesPolicy is a guard in the form of iptables.
func iptablesPolicy(in Space, family result.Family, rules []Rule) IPTables {
	lines := make([]Line, 0, len(rules)+1)
	lines = append(lines, ":INPUT DROP [0:0]")
	for _, r := range rules {
		match, target := "-s "+r.From.String(), "ACCEPT"
		if r.Established {
			match = "-m conntrack --ctstate RELATED,ESTABLISHED"
		}
		if r.Do == Drop {
			target = "DROP"
		}
		lines = append(lines, Line("-A INPUT "+match+" -j "+target))
	}
	return IPTables{In: in, Family: family, Table: "filter", Lines: lines}
}

// ebpfPolicy guards each pod of a plan by one lookup among a number of rules that never match and those that let the pods,
// and the nodes that may stand in for them, in. It is stateless: answers come from where requests go to.
func ebpfPolicy(t Topology, p Plan, rules int) []Op {
	entries := make([]GuardEntry, 0, rules+1+len(t.Nodes))
	for _, r := range unmatched(t.Family, rules) {
		entries = append(entries, GuardEntry{From: r.From, Do: Drop})
	}
	entries = append(entries, GuardEntry{From: allPods(t), Do: Accept})
	for _, n := range t.Nodes {
		entries = append(entries, GuardEntry{From: alone(n.Address.Addr()), Do: Accept})
	}
	if t.Conditions.Service != "" {
		entries = append(entries, GuardEntry{From: serviceRange(t.Family), Do: Accept}) // as with policyRules
	}
	var ops []Op
	for _, e := range ending(p) {
		devices := []string{e.Device}
		if e.In.Kind == NodeSpace {
			devices = append(devices, "lo")
		}
		ops = append(ops, Guard{In: e.In, Devices: devices, Entries: entries})
	}
	return ops
}

// allPods is the range that holds the pods of all nodes.
func allPods(t Topology) netip.Prefix {
	return netip.PrefixFrom(t.Pods[0].Address, podBits(t.Family)).Masked()
}

// Filtered is a network whose first node holds each forwarded packet against a number of firewall rules that never match: a
// small known change to hold measurements against, since requests and responses pass the rules once each. It makes a
// difference only where nodes route, as in routed.
func Filtered(n Network, rules int) Network {
	base := n.Build
	n.Name = fmt.Sprintf("%s-filter-%d", n.Name, rules)
	n.Summary = fmt.Sprintf("%s; the first node's firewall holds forwarded packets against %d rules", n.Summary, rules)
	n.Build = func(t Topology) Plan {
		p := base(t)
		p.Ops = append(p.Ops, Rules{In: InNode(0), Family: t.Family, Table: "filter", Chains: []Chain{
			{Name: "policy", Hook: Forwarding, Rules: unmatched(t.Family, rules)},
		}})
		return p
	}
	return n
}

// unmatched drops what comes from addresses that no pod has: those shared by carriers' customers (RFC 6598), or those that
// stand in documentation (RFC 3849).
func unmatched(f result.Family, count int) []Rule {
	rules := make([]Rule, count)
	for k := range rules {
		from := netip.AddrFrom4([4]byte{100, 64 + byte(k>>16), byte(k >> 8), byte(k)})
		if f == result.IPv6 {
			from = netip.AddrFrom16([16]byte{0: 0x20, 1: 0x01, 2: 0x0d, 3: 0xb8, 13: byte(k >> 16), 14: byte(k >> 8), 15: byte(k)})
		}
		rules[k] = Rule{From: alone(from), Do: Drop}
	}
	return rules
}

// Rules is an nftables table in one namespace.
type Rules struct {
	In Space
	// Family is the family of the packets that pass the table; "" is IPv4.
	Family result.Family
	Table  string
	Chains []Chain
}

// Hook is a place in the packet's way where a chain is called.
type Hook string

// The hooks that plans use.
const (
	Prerouting  Hook = "prerouting"
	Input       Hook = "input"
	Forwarding  Hook = "forward"
	Postrouting Hook = "postrouting"
)

// Chain is a base chain. A NAT chain sees the first packet of each connection, a filter chain every packet.
type Chain struct {
	Name string
	NAT  bool
	Hook Hook
	// Priority orders the chains of one hook: -100 translates destinations, 0 filters, 100 translates sources.
	Priority int
	// Drop is the policy; without it the chain accepts.
	Drop  bool
	Rules []Rule
}

// Protocol is a transport protocol by its number.
type Protocol uint8

// The protocols that rules match.
const (
	AnyProtocol Protocol = 0
	TCP         Protocol = 6
	UDP         Protocol = 17
)

// Rule matches packets and says what becomes of them. A zero field matches everything.
type Rule struct {
	In, Out, NotOut string // devices
	From, To        netip.Prefix
	Protocol        Protocol
	// FirstPort and LastPort hold the destination's port; they need a protocol.
	FirstPort, LastPort uint16
	// Established matches packets of connections that have seen an answer, and those related to them.
	Established bool
	Do          Verdict
	// Destination is where TranslateDestination sends the packet; the port stays.
	Destination netip.Addr
}

// Verdict is what a rule does.
type Verdict int

// The verdicts.
const (
	Accept Verdict = iota
	Drop
	Masquerade
	TranslateDestination
)

// String renders the table in the notation of nft. Of a long chain it shows the ends.
func (o Rules) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: table %s %s {\n", o.In, byFamily(o.Family, "ip", "ip6"), o.Table)
	for _, c := range o.Chains {
		kind, policy := "filter", "accept"
		if c.NAT {
			kind = "nat"
		}
		if c.Drop {
			policy = "drop"
		}
		fmt.Fprintf(&b, "  chain %s {\n    type %s hook %s priority %d; policy %s;\n", c.Name, kind, c.Hook, c.Priority, policy)
		for _, line := range ends(c.Rules) {
			fmt.Fprintf(&b, "    %s\n", line)
		}
		b.WriteString("  }\n")
	}
	b.WriteString("}")
	return b.String()
}

// String renders the rule in the notation of nft.
func (r Rule) String() string {
	var words []string
	add := func(format string, args ...any) { words = append(words, fmt.Sprintf(format, args...)) }
	if r.In != "" {
		add("iifname %q", r.In)
	}
	if r.Out != "" {
		add("oifname %q", r.Out)
	}
	if r.NotOut != "" {
		add("oifname != %q", r.NotOut)
	}
	address := func(p netip.Prefix, field string) {
		switch {
		case !p.IsValid():
		case p.Addr().Is6():
			add("ip6 %s %s", field, p)
		default:
			add("ip %s %s", field, p)
		}
	}
	address(r.From, "saddr")
	address(r.To, "daddr")
	if name := map[Protocol]string{TCP: "tcp", UDP: "udp"}[r.Protocol]; name != "" {
		add("%s dport %d-%d", name, r.FirstPort, r.LastPort)
	}
	if r.Established {
		add("ct state established,related")
	}
	switch r.Do {
	case Accept:
		add("accept")
	case Drop:
		add("drop")
	case Masquerade:
		add("masquerade")
	case TranslateDestination:
		add("dnat to %s", r.Destination)
	}
	return strings.Join(words, " ")
}
