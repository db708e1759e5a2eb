package network

import "netdelta/result"

// Need is something that a plan asks of the kernel and that a kernel may lack.
type Need int

// The needs of the operations.
const (
	NeedVeth Need = iota
	NeedBridge
	NeedMacvlan
	NeedIPVlan
	NeedVxlan
	NeedShaping
	NeedRules
	NeedIPv6
	NeedRules6
	NeedImpairing
	NeedBonding
	NeedLRO
	NeedSteering
	NeedTUN
)

// Requirement is a need in words.
type Requirement struct {
	What   string // "ipvlan links"
	Option string // "CONFIG_IPVLAN"
	Module string // "ipvlan"
}

// Requirement puts the need in words.
func (n Need) Requirement() Requirement {
	switch n {
	case NeedVeth:
		return Requirement{"veth links", "CONFIG_VETH", "veth"}
	case NeedBridge:
		return Requirement{"bridges", "CONFIG_BRIDGE", "bridge"}
	case NeedMacvlan:
		return Requirement{"macvlan links", "CONFIG_MACVLAN", "macvlan"}
	case NeedIPVlan:
		return Requirement{"ipvlan links", "CONFIG_IPVLAN", "ipvlan"}
	case NeedVxlan:
		return Requirement{"VXLAN links", "CONFIG_VXLAN", "vxlan"}
	case NeedShaping:
		return Requirement{"the tbf queueing discipline", "CONFIG_NET_SCH_TBF", "sch_tbf"}
	case NeedRules:
		return Requirement{"nftables with address translation", "CONFIG_NF_TABLES, CONFIG_NFT_CT, CONFIG_NFT_NAT, CONFIG_NFT_MASQ", "nft_masq"}
	case NeedIPv6:
		return Requirement{"IPv6", "CONFIG_IPV6", "ipv6"}
	case NeedRules6:
		return Requirement{"nftables with address translation for IPv6", "CONFIG_NF_TABLES_IPV6, CONFIG_NFT_CT, CONFIG_NFT_NAT, CONFIG_NFT_MASQ", "nft_masq"}
	case NeedImpairing:
		return Requirement{"the netem queueing discipline", "CONFIG_NET_SCH_NETEM", "sch_netem"}
	case NeedBonding:
		return Requirement{"bonds", "CONFIG_BONDING", "bonding"}
	case NeedLRO:
		return Requirement{"devices with large receive offload", "a network card with LRO", ""}
	case NeedSteering:
		return Requirement{"two processors or more, and receive packet steering", "CONFIG_RPS", ""}
	case NeedTUN:
		return Requirement{"TUN devices", "CONFIG_TUN", "tun"}
	case NeedRedirection, NeedGuard, NeedBalance, NeedJoinedSockets, NeedXDPRedirection:
		return ebpfRequirement(n)
	case NeedIPIP, NeedIPIP6, NeedGRE, NeedGRE6, NeedGeneve, NeedNetkit, NeedDatapath, NeedExternalVxlan, NeedWireGuard, NeedESP, NeedESP6:
		return tunnelRequirement(n)
	case NeedIPTables, NeedIPTables6, NeedServiceMap, NeedServiceMap6, NeedIPVS, NeedIPVS6:
		return rulesRequirement(n)
	}
	return Requirement{}
}

// String is what is needed, with the kernel's option for it.
func (n Need) String() string {
	r := n.Requirement()
	return r.What + " (" + r.Option + ")"
}

// needOf tells what an operation needs beyond what every kernel with namespaces has.
func needOf(op Op) (Need, bool) {
	switch op := op.(type) {
	case Veth:
		return NeedVeth, true
	case Bridge, Enslave:
		return NeedBridge, true
	case Macvlan:
		return NeedMacvlan, true
	case IPVlan:
		return NeedIPVlan, true
	case Vxlan:
		if op.External {
			return NeedExternalVxlan, true
		}
		return NeedVxlan, true
	case Forward:
		return NeedVxlan, true
	case Tunnel, Geneve, Netkit, Datapath, WireGuard, Protect:
		return tunnelNeedOf(op)
	case Shape:
		return NeedShaping, true
	case UDPTunnel:
		return NeedTUN, true
	case Impair:
		return NeedImpairing, true
	case Bond:
		return NeedBonding, true
	case Features:
		return NeedLRO, op.LRO == result.On
	case Steer:
		return NeedSteering, op.To == result.On
	case Rules:
		if op.Family == result.IPv6 {
			return NeedRules6, true
		}
		return NeedRules, true
	case Redirection, Guard, Balance, JoinSockets, XDPRedirection:
		return ebpfNeedOf(op)
	case IPTables, ServiceMap, IPVS:
		return rulesNeedOf(op)
	case Address:
		return NeedIPv6, op.Prefix.Addr().Is6()
	}
	return 0, false
}
