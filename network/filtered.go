package network

import (
	"fmt"
	"net/netip"
)

// Filtered is a network whose nodes hold each forwarded packet against a number of firewall rules that never match: what a
// policy costs, or a small known change to hold a measurement against. It makes a difference only where nodes route, as in
// routed.
func Filtered(n Network, rules int) Network {
	base := n.Build
	n.Name = fmt.Sprintf("%s-filter-%d", n.Name, rules)
	n.Summary = fmt.Sprintf("%s; each node's firewall holds forwarded packets against %d rules", n.Summary, rules)
	n.Build = func(t Topology) Plan {
		p := base(t)
		for i := range t.Nodes {
			p.Ops = append(p.Ops, Rules{In: InNode(i), Table: "filter", Chains: []Chain{
				{Name: "policy", Hook: Forwarding, Rules: unmatched(rules)},
			}})
		}
		return p
	}
	return n
}

// unmatched drops what comes from addresses that no pod has: those shared by carriers' customers (RFC 6598).
func unmatched(count int) []Rule {
	rules := make([]Rule, count)
	for k := range rules {
		from := netip.AddrFrom4([4]byte{100, 64 + byte(k>>16), byte(k >> 8), byte(k)})
		rules[k] = Rule{From: alone(from), Do: Drop}
	}
	return rules
}
