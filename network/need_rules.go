package network

import "netdelta/result"

// The needs of policies and services that are not of eBPF.
const (
	NeedIPTables Need = 200 + iota
	NeedIPTables6
	NeedServiceMap
	NeedServiceMap6
	NeedIPVS
	NeedIPVS6
)

// rulesRequirement puts such a need in words.
func rulesRequirement(n Need) Requirement {
	switch n {
	case NeedIPTables:
		return Requirement{"iptables", "CONFIG_IP_NF_IPTABLES, CONFIG_IP_NF_FILTER, CONFIG_IP_NF_NAT, CONFIG_NETFILTER_XT_MATCH_CONNTRACK", "iptable_nat"}
	case NeedIPTables6:
		return Requirement{"iptables for IPv6", "CONFIG_IP6_NF_IPTABLES, CONFIG_IP6_NF_FILTER, CONFIG_IP6_NF_NAT, CONFIG_NETFILTER_XT_MATCH_CONNTRACK", "ip6table_nat"}
	case NeedServiceMap:
		return Requirement{"nftables with verdict maps and address translation", "CONFIG_NF_TABLES, CONFIG_NFT_NAT", "nft_nat"}
	case NeedServiceMap6:
		return Requirement{"nftables with verdict maps and address translation for IPv6", "CONFIG_NF_TABLES_IPV6, CONFIG_NFT_NAT", "nft_nat"}
	case NeedIPVS:
		return Requirement{"IPVS", "CONFIG_IP_VS, CONFIG_IP_VS_RR", "ip_vs_rr"}
	case NeedIPVS6:
		return Requirement{"IPVS for IPv6", "CONFIG_IP_VS, CONFIG_IP_VS_IPV6, CONFIG_IP_VS_RR", "ip_vs_rr"}
	}
	return Requirement{}
}

// rulesNeedOf tells what an operation that guards or translates needs.
func rulesNeedOf(op Op) (Need, bool) {
	of := func(family result.Family, four, six Need) (Need, bool) {
		if family == result.IPv6 {
			return six, true
		}
		return four, true
	}
	switch op := op.(type) {
	case IPTables:
		return of(op.Family, NeedIPTables, NeedIPTables6)
	case ServiceMap:
		return of(op.Family, NeedServiceMap, NeedServiceMap6)
	case IPVS:
		return of(op.Family, NeedIPVS, NeedIPVS6)
	}
	return 0, false
}
