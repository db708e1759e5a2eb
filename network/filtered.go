package network

import (
	"fmt"
	"net/netip"

	"netdelta/result"
)

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
