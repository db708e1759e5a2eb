package network

import "netdelta/result"

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
	NeedBridgeNetfilter
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
		NeedVeth:            {"veth links", "CONFIG_VETH", "veth"},
		NeedBridge:          {"bridges", "CONFIG_BRIDGE", "bridge"},
		NeedMacvlan:         {"macvlan links", "CONFIG_MACVLAN", "macvlan"},
		NeedIPVlan:          {"ipvlan links", "CONFIG_IPVLAN", "ipvlan"},
		NeedVxlan:           {"VXLAN links", "CONFIG_VXLAN", "vxlan"},
		NeedExternalVxlan:   {"VXLAN links that are told each packet's way", "CONFIG_VXLAN", "vxlan"},
		NeedIPIP:            {"IP-in-IP tunnels", "CONFIG_NET_IPIP", "ipip"},
		NeedIPIP6:           {"IPv6-in-IPv6 tunnels", "CONFIG_IPV6_TUNNEL", "ip6_tunnel"},
		NeedGRE:             {"GRE tunnels", "CONFIG_NET_IPGRE", "ip_gre"},
		NeedGRE6:            {"GRE tunnels over IPv6", "CONFIG_IPV6_GRE", "ip6_gre"},
		NeedGeneve:          {"Geneve links", "CONFIG_GENEVE", "geneve"},
		NeedNetkit:          {"netkit links of Linux 6.7 or newer", "CONFIG_NETKIT", "netkit"},
		NeedDatapath:        {"the Open vSwitch datapath", "CONFIG_OPENVSWITCH", "openvswitch"},
		NeedTUN:             {"TUN devices", "CONFIG_TUN", "tun"},
		NeedWireGuard:       {"WireGuard links", "CONFIG_WIREGUARD", "wireguard"},
		NeedESP:             {"IPsec with AES-GCM", "CONFIG_XFRM_USER, CONFIG_INET_ESP, CONFIG_CRYPTO_GCM", "esp4"},
		NeedESP6:            {"IPsec with AES-GCM over IPv6", "CONFIG_XFRM_USER, CONFIG_INET6_ESP, CONFIG_CRYPTO_GCM", "esp6"},
		NeedIPv6:            {"IPv6", "CONFIG_IPV6", "ipv6"},
		NeedShaping:         {"the tbf queueing discipline", "CONFIG_NET_SCH_TBF", "sch_tbf"},
		NeedImpairing:       {"the netem queueing discipline", "CONFIG_NET_SCH_NETEM", "sch_netem"},
		NeedBonding:         {"bonds", "CONFIG_BONDING", "bonding"},
		NeedLRO:             {"devices with large receive offload", "a network card with LRO", ""},
		NeedSteering:        {"two processors or more, and receive packet steering", "CONFIG_RPS", ""},
		NeedBridgeNetfilter: {"bridges that hand packets to the firewall", "CONFIG_BRIDGE_NETFILTER", "br_netfilter"},
		NeedRules:           {"nftables with address translation", "CONFIG_NF_TABLES, " + nat, "nft_masq"},
		NeedRules6:          {"nftables with address translation for IPv6", "CONFIG_NF_TABLES_IPV6, " + nat, "nft_masq"},
		NeedIPTables:        {"iptables", "CONFIG_IP_NF_IPTABLES, CONFIG_IP_NF_FILTER, CONFIG_IP_NF_NAT, CONFIG_NETFILTER_XT_MATCH_CONNTRACK", "iptable_nat"},
		NeedIPTables6:       {"iptables for IPv6", "CONFIG_IP6_NF_IPTABLES, CONFIG_IP6_NF_FILTER, CONFIG_IP6_NF_NAT, CONFIG_NETFILTER_XT_MATCH_CONNTRACK", "ip6table_nat"},
		NeedServiceMap:      {"nftables with verdict maps and address translation", "CONFIG_NF_TABLES, CONFIG_NFT_NAT", "nft_nat"},
		NeedServiceMap6:     {"nftables with verdict maps and address translation for IPv6", "CONFIG_NF_TABLES_IPV6, CONFIG_NFT_NAT", "nft_nat"},
		NeedIPVS:            {"IPVS", ipvs, "ip_vs_rr"},
		NeedIPVS6:           {"IPVS for IPv6", "CONFIG_IP_VS, CONFIG_IP_VS_IPV6, CONFIG_IP_VS_RR", "ip_vs_rr"},
		NeedRedirection:     {"eBPF redirection at devices (tcx)", tcx, ""},
		NeedGuard:           {"eBPF guards at devices (tcx)", tcx, ""},
		NeedBalance:         {"eBPF address translation at devices (tcx)", tcx, ""},
		NeedJoinedSockets:   {"eBPF socket maps and a control group of its own", "CONFIG_BPF_STREAM_PARSER, CONFIG_CGROUP_BPF", ""},
		NeedXDPRedirection:  {"XDP redirection between veth links", "CONFIG_BPF_SYSCALL, CONFIG_VETH", ""},
	}
}

// Requirement puts the need in words.
func (n Need) Requirement() Requirement { return requirements()[n] }

// String is what is needed, with the kernel's option for it.
func (n Need) String() string {
	r := n.Requirement()
	return r.What + " (" + r.Option + ")"
}

// needNothing is the need of operations that every kernel with namespaces carries out.
const needNothing Need = -1

func (Route) need() Need          { return needNothing }
func (Neighbour) need() Need      { return needNothing }
func (LocalRoute) need() Need     { return needNothing }
func (Attach) need() Need         { return needNothing }
func (Card) need() Need           { return needNothing }
func (Function) need() Need       { return needNothing }
func (Uplink) need() Need         { return needNothing }
func (Veth) need() Need           { return NeedVeth }
func (Bridge) need() Need         { return NeedBridge }
func (Enslave) need() Need        { return NeedBridge }
func (Macvlan) need() Need        { return NeedMacvlan }
func (IPVlan) need() Need         { return NeedIPVlan }
func (Forward) need() Need        { return NeedVxlan }
func (Geneve) need() Need         { return NeedGeneve }
func (Netkit) need() Need         { return NeedNetkit }
func (Datapath) need() Need       { return NeedDatapath }
func (UDPTunnel) need() Need      { return NeedTUN }
func (WireGuard) need() Need      { return NeedWireGuard }
func (Shape) need() Need          { return NeedShaping }
func (Impair) need() Need         { return NeedImpairing }
func (Bond) need() Need           { return NeedBonding }
func (Redirection) need() Need    { return NeedRedirection }
func (Guard) need() Need          { return NeedGuard }
func (Balance) need() Need        { return NeedBalance }
func (JoinSockets) need() Need    { return NeedJoinedSockets }
func (XDPRedirection) need() Need { return NeedXDPRedirection }
func (o Protect) need() Need      { return either(o.Local.Is6(), NeedESP6, NeedESP) }
func (o Rules) need() Need        { return byFamily(o.Family, NeedRules, NeedRules6) }
func (o IPTables) need() Need     { return byFamily(o.Family, NeedIPTables, NeedIPTables6) }
func (o ServiceMap) need() Need {
	return byFamily(o.Family, NeedServiceMap, NeedServiceMap6)
}
func (o IPVS) need() Need     { return byFamily(o.Family, NeedIPVS, NeedIPVS6) }
func (o Vxlan) need() Need    { return either(o.External, NeedExternalVxlan, NeedVxlan) }
func (o Address) need() Need  { return either(o.Prefix.Addr().Is6(), NeedIPv6, needNothing) }
func (o Features) need() Need { return either(o.LRO == result.On, NeedLRO, needNothing) }
func (o Sysctl) need() Need {
	return either(o.Name == bridgeNetfilter4 && !o.Optional, NeedBridgeNetfilter, needNothing)
}
func (o Steer) need() Need { return either(o.To == result.On, NeedSteering, needNothing) }

func (o Tunnel) need() Need {
	if o.Kind == GRE {
		return either(o.Local.Is6(), NeedGRE6, NeedGRE)
	}
	return either(o.Local.Is6(), NeedIPIP6, NeedIPIP)
}

// either is the first need if a condition holds, else the second.
func either(condition bool, first, second Need) Need {
	if condition {
		return first
	}
	return second
}
