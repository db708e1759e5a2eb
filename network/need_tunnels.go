package network

// The needs of tunnels, of encryption, and of devices that newer kernels have. Where a kernel can lack one version of IP
// alone, there are two.
const (
	NeedIPIP Need = 300 + iota
	NeedIPIP6
	NeedGRE
	NeedGRE6
	NeedGeneve
	NeedNetkit
	NeedDatapath
	NeedExternalVxlan
	NeedWireGuard
	NeedESP
	NeedESP6
)

// tunnelRequirement puts such a need in words.
func tunnelRequirement(n Need) Requirement {
	switch n {
	case NeedIPIP:
		return Requirement{"IP-in-IP tunnels", "CONFIG_NET_IPIP", "ipip"}
	case NeedIPIP6:
		return Requirement{"IPv6-in-IPv6 tunnels", "CONFIG_IPV6_TUNNEL", "ip6_tunnel"}
	case NeedGRE:
		return Requirement{"GRE tunnels", "CONFIG_NET_IPGRE", "ip_gre"}
	case NeedGRE6:
		return Requirement{"GRE tunnels over IPv6", "CONFIG_IPV6_GRE", "ip6_gre"}
	case NeedGeneve:
		return Requirement{"Geneve links", "CONFIG_GENEVE", "geneve"}
	case NeedNetkit:
		return Requirement{"netkit links of Linux 6.7 or newer", "CONFIG_NETKIT", "netkit"}
	case NeedDatapath:
		return Requirement{"the Open vSwitch datapath", "CONFIG_OPENVSWITCH", "openvswitch"}
	case NeedExternalVxlan:
		return Requirement{"VXLAN links that are told each packet's way", "CONFIG_VXLAN", "vxlan"}
	}
	return encryptionRequirement(n)
}

func encryptionRequirement(n Need) Requirement {
	switch n {
	case NeedWireGuard:
		return Requirement{"WireGuard links", "CONFIG_WIREGUARD", "wireguard"}
	case NeedESP:
		return Requirement{"IPsec with AES-GCM", "CONFIG_XFRM_USER, CONFIG_INET_ESP, CONFIG_CRYPTO_GCM", "esp4"}
	case NeedESP6:
		return Requirement{"IPsec with AES-GCM over IPv6", "CONFIG_XFRM_USER, CONFIG_INET6_ESP, CONFIG_CRYPTO_GCM", "esp6"}
	}
	return Requirement{}
}

// tunnelNeedOf tells what such an operation needs.
func tunnelNeedOf(op Op) (Need, bool) {
	switch op := op.(type) {
	case Tunnel:
		return versioned(op.Local.Is6(), map[TunnelKind][2]Need{IPIP: {NeedIPIP, NeedIPIP6}, GRE: {NeedGRE, NeedGRE6}}[op.Kind]), true
	case Geneve:
		return NeedGeneve, true
	case Netkit:
		return NeedNetkit, true
	case Datapath:
		return NeedDatapath, true
	case WireGuard:
		return NeedWireGuard, true
	case Protect:
		return versioned(op.Local.Is6(), [2]Need{NeedESP, NeedESP6}), true
	}
	return 0, false
}

// versioned is the first of two needs for IPv4, the second for IPv6.
func versioned(six bool, needs [2]Need) Need {
	if six {
		return needs[1]
	}
	return needs[0]
}
