package network

import (
	"fmt"
	"net/netip"
	"strings"

	"netdelta/result"
)

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
