package network

import (
	"reflect"

	"netdelta/result"
)

// Need is something that a plan asks of the kernel and that a kernel may lack.
type Need int

// The needs of the operations. Where a kernel can lack one version of IP alone, there are two.
const (
	NeedVeth Need = iota
	NeedBridge
	NeedMacvlan
	NeedIPVlan
	NeedVxlan
	NeedExternalVxlan
	NeedIPIP
	NeedIPIP6
	NeedGRE
	NeedGRE6
	NeedGeneve
	NeedNetkit
	NeedDatapath
	NeedTUN
	NeedWireGuard
	NeedESP
	NeedESP6
	NeedIPv6
	NeedShaping
	NeedImpairing
	NeedBonding
	NeedLRO
	NeedSteering
	NeedRules
	NeedRules6
	NeedIPTables
	NeedIPTables6
	NeedServiceMap
	NeedServiceMap6
	NeedIPVS
	NeedIPVS6
	// The needs of operations that load eBPF programs are tried with the very programs that the operation loads.
	NeedRedirection
	NeedGuard
	NeedBalance
	NeedJoinedSockets
	NeedXDPRedirection
)

// Requirement is a need in words.
type Requirement struct {
	What   string // "ipvlan links"
	Option string // "CONFIG_IPVLAN"
	Module string // "ipvlan"
}

// requirements puts all needs in words.
func requirements() map[Need]Requirement {
	const nat = "CONFIG_NFT_CT, CONFIG_NFT_NAT, CONFIG_NFT_MASQ"
	const tcx, ipvs = "CONFIG_BPF_SYSCALL, CONFIG_NET_XGRESS", "CONFIG_IP_VS, CONFIG_IP_VS_RR"
	return map[Need]Requirement{
		NeedVeth:           {"veth links", "CONFIG_VETH", "veth"},
		NeedBridge:         {"bridges", "CONFIG_BRIDGE", "bridge"},
		NeedMacvlan:        {"macvlan links", "CONFIG_MACVLAN", "macvlan"},
		NeedIPVlan:         {"ipvlan links", "CONFIG_IPVLAN", "ipvlan"},
		NeedVxlan:          {"VXLAN links", "CONFIG_VXLAN", "vxlan"},
		NeedExternalVxlan:  {"VXLAN links that are told each packet's way", "CONFIG_VXLAN", "vxlan"},
		NeedIPIP:           {"IP-in-IP tunnels", "CONFIG_NET_IPIP", "ipip"},
		NeedIPIP6:          {"IPv6-in-IPv6 tunnels", "CONFIG_IPV6_TUNNEL", "ip6_tunnel"},
		NeedGRE:            {"GRE tunnels", "CONFIG_NET_IPGRE", "ip_gre"},
		NeedGRE6:           {"GRE tunnels over IPv6", "CONFIG_IPV6_GRE", "ip6_gre"},
		NeedGeneve:         {"Geneve links", "CONFIG_GENEVE", "geneve"},
		NeedNetkit:         {"netkit links of Linux 6.7 or newer", "CONFIG_NETKIT", "netkit"},
		NeedDatapath:       {"the Open vSwitch datapath", "CONFIG_OPENVSWITCH", "openvswitch"},
		NeedTUN:            {"TUN devices", "CONFIG_TUN", "tun"},
		NeedWireGuard:      {"WireGuard links", "CONFIG_WIREGUARD", "wireguard"},
		NeedESP:            {"IPsec with AES-GCM", "CONFIG_XFRM_USER, CONFIG_INET_ESP, CONFIG_CRYPTO_GCM", "esp4"},
		NeedESP6:           {"IPsec with AES-GCM over IPv6", "CONFIG_XFRM_USER, CONFIG_INET6_ESP, CONFIG_CRYPTO_GCM", "esp6"},
		NeedIPv6:           {"IPv6", "CONFIG_IPV6", "ipv6"},
		NeedShaping:        {"the tbf queueing discipline", "CONFIG_NET_SCH_TBF", "sch_tbf"},
		NeedImpairing:      {"the netem queueing discipline", "CONFIG_NET_SCH_NETEM", "sch_netem"},
		NeedBonding:        {"bonds", "CONFIG_BONDING", "bonding"},
		NeedLRO:            {"devices with large receive offload", "a network card with LRO", ""},
		NeedSteering:       {"two processors or more, and receive packet steering", "CONFIG_RPS", ""},
		NeedRules:          {"nftables with address translation", "CONFIG_NF_TABLES, " + nat, "nft_masq"},
		NeedRules6:         {"nftables with address translation for IPv6", "CONFIG_NF_TABLES_IPV6, " + nat, "nft_masq"},
		NeedIPTables:       {"iptables", "CONFIG_IP_NF_IPTABLES, CONFIG_IP_NF_FILTER, CONFIG_IP_NF_NAT, CONFIG_NETFILTER_XT_MATCH_CONNTRACK", "iptable_nat"},
		NeedIPTables6:      {"iptables for IPv6", "CONFIG_IP6_NF_IPTABLES, CONFIG_IP6_NF_FILTER, CONFIG_IP6_NF_NAT, CONFIG_NETFILTER_XT_MATCH_CONNTRACK", "ip6table_nat"},
		NeedServiceMap:     {"nftables with verdict maps and address translation", "CONFIG_NF_TABLES, CONFIG_NFT_NAT", "nft_nat"},
		NeedServiceMap6:    {"nftables with verdict maps and address translation for IPv6", "CONFIG_NF_TABLES_IPV6, CONFIG_NFT_NAT", "nft_nat"},
		NeedIPVS:           {"IPVS", ipvs, "ip_vs_rr"},
		NeedIPVS6:          {"IPVS for IPv6", "CONFIG_IP_VS, CONFIG_IP_VS_IPV6, CONFIG_IP_VS_RR", "ip_vs_rr"},
		NeedRedirection:    {"eBPF redirection at devices (tcx)", tcx, ""},
		NeedGuard:          {"eBPF guards at devices (tcx)", tcx, ""},
		NeedBalance:        {"eBPF address translation at devices (tcx)", tcx, ""},
		NeedJoinedSockets:  {"eBPF socket maps and a control group of its own", "CONFIG_BPF_STREAM_PARSER, CONFIG_CGROUP_BPF", ""},
		NeedXDPRedirection: {"XDP redirection between veth links", "CONFIG_BPF_SYSCALL, CONFIG_VETH", ""},
	}
}

// Requirement puts the need in words.
func (n Need) Requirement() Requirement { return requirements()[n] }

// String is what is needed, with the kernel's option for it.
func (n Need) String() string {
	r := n.Requirement()
	return r.What + " (" + r.Option + ")"
}

// needs tells, by the type of an operation, what it needs beyond what every kernel with namespaces has: where there are two, the
// second is for IPv6.
func needs() map[reflect.Type][]Need {
	return map[reflect.Type][]Need{
		reflect.TypeFor[Veth]():           {NeedVeth},
		reflect.TypeFor[Bridge]():         {NeedBridge},
		reflect.TypeFor[Enslave]():        {NeedBridge},
		reflect.TypeFor[Macvlan]():        {NeedMacvlan},
		reflect.TypeFor[IPVlan]():         {NeedIPVlan},
		reflect.TypeFor[Forward]():        {NeedVxlan},
		reflect.TypeFor[Geneve]():         {NeedGeneve},
		reflect.TypeFor[Netkit]():         {NeedNetkit},
		reflect.TypeFor[Datapath]():       {NeedDatapath},
		reflect.TypeFor[UDPTunnel]():      {NeedTUN},
		reflect.TypeFor[WireGuard]():      {NeedWireGuard},
		reflect.TypeFor[Protect]():        {NeedESP, NeedESP6},
		reflect.TypeFor[Shape]():          {NeedShaping},
		reflect.TypeFor[Impair]():         {NeedImpairing},
		reflect.TypeFor[Bond]():           {NeedBonding},
		reflect.TypeFor[Rules]():          {NeedRules, NeedRules6},
		reflect.TypeFor[IPTables]():       {NeedIPTables, NeedIPTables6},
		reflect.TypeFor[ServiceMap]():     {NeedServiceMap, NeedServiceMap6},
		reflect.TypeFor[IPVS]():           {NeedIPVS, NeedIPVS6},
		reflect.TypeFor[Redirection]():    {NeedRedirection},
		reflect.TypeFor[Guard]():          {NeedGuard},
		reflect.TypeFor[Balance]():        {NeedBalance},
		reflect.TypeFor[JoinSockets]():    {NeedJoinedSockets},
		reflect.TypeFor[XDPRedirection](): {NeedXDPRedirection},
	}
}

// needOf tells what an operation needs, and false for nothing.
func needOf(op Op) (Need, bool) {
	found, six := needs()[reflect.TypeOf(op)], false
	switch op := op.(type) {
	case Vxlan:
		found, six = []Need{NeedVxlan, NeedExternalVxlan}, op.External
	case Tunnel:
		found, six = []Need{NeedIPIP, NeedIPIP6}, op.Local.Is6()
		if op.Kind == GRE {
			found = []Need{NeedGRE, NeedGRE6}
		}
	case Address:
		return NeedIPv6, op.Prefix.Addr().Is6()
	case Features:
		return NeedLRO, op.LRO == result.On
	case Steer:
		return NeedSteering, op.To == result.On
	case Protect:
		six = op.Local.Is6()
	case Rules:
		six = op.Family == result.IPv6
	case IPTables:
		six = op.Family == result.IPv6
	case ServiceMap:
		six = op.Family == result.IPv6
	case IPVS:
		six = op.Family == result.IPv6
	}
	switch {
	case len(found) == 0:
		return 0, false
	case six:
		return found[1], true
	}
	return found[0], true
}
