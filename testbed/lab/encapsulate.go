package lab

import (
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"netdelta/network"
	"netdelta/unit"
)

// tunnelHops is how far wrapped packets may go: as far as most packets may.
const tunnelHops = 64

// encapsulate carries out the operations that make devices which wrap packets, or join namespaces in newer ways.
func (b *builder) encapsulate(op network.Op) error {
	switch op := op.(type) {
	case network.Tunnel:
		return b.ipTunnel(op)
	case network.Geneve:
		s, err := b.in(op.In)
		if err != nil {
			return err
		}
		return s.nl.LinkAdd(&netlink.Geneve{
			LinkAttrs: attrs(op.Name, op.MAC, op.MTU), ID: op.ID, Dport: op.Port, Remote: op.Remote.AsSlice(), Ttl: tunnelHops,
		})
	case network.Netkit:
		return b.netkit(op)
	case network.Datapath:
		s, err := b.in(op.In)
		if err != nil {
			return err
		}
		return s.ns.Do(func() error { return addDatapath(op) })
	case network.WireGuard:
		s, err := b.in(op.In)
		if err != nil {
			return err
		}
		return s.wireGuard(op)
	case network.Protect:
		s, err := b.in(op.In)
		if err != nil {
			return err
		}
		return s.ns.Do(func() error { return protect(op) })
	}
	return fmt.Errorf("the lab can't carry out %T", op)
}

// ipTunnel makes a tunnel over the device that it names, which also ties packets to groups on the link to that device.
func (b *builder) ipTunnel(op network.Tunnel) error {
	s, i, err := b.device(op.Under)
	if err != nil {
		return err
	}
	a := attrs(op.Name, network.MAC{}, op.MTU)
	local, remote := op.Local.AsSlice(), net.IP(nil)
	if op.Remote.IsValid() {
		remote = op.Remote.AsSlice()
	}
	switch {
	case op.Kind == network.IPIP && op.Local.Is4():
		return s.nl.LinkAdd(&netlink.Iptun{
			LinkAttrs: a, Link: uint32(i), Local: local, Remote: remote, Ttl: tunnelHops, Proto: uint8(network.ProtocolIPIP), PMtuDisc: 1,
		})
	case op.Kind == network.IPIP:
		return s.nl.LinkAdd(&netlink.Ip6tnl{
			LinkAttrs: a, Link: uint32(i), Local: local, Remote: remote, Ttl: tunnelHops, Proto: uint8(network.ProtocolIPIP6), Flags: noEncapsulationLimit,
		})
	case op.Local.Is4():
		return s.nl.LinkAdd(&netlink.Gretun{LinkAttrs: a, Link: uint32(i), Local: local, Remote: remote, Ttl: tunnelHops, PMtuDisc: 1})
	}
	return s.ns.Do(func() error { return addGRE6(op, i) })
}

// noEncapsulationLimit is IP6_TNL_F_IGN_ENCAP_LIMIT: without it each packet gets an option of 8 bytes that says how often it
// may be wrapped again (RFC 2473, section 4.1.1).
const noEncapsulationLimit = 0x1

// addGRE6 makes a GRE tunnel over IPv6 in the namespace of the calling thread: the library has no way to leave out the limit.
func addGRE6(op network.Tunnel, under int) error {
	r := nl.NewNetlinkRequest(unix.RTM_NEWLINK, unix.NLM_F_CREATE|unix.NLM_F_EXCL|unix.NLM_F_ACK)
	head := nl.NewIfInfomsg(unix.AF_UNSPEC)
	head.Flags, head.Change = unix.IFF_UP, unix.IFF_UP
	r.AddData(head)
	r.AddData(nl.NewRtAttr(unix.IFLA_IFNAME, nl.ZeroTerminated(op.Name)))
	r.AddData(nl.NewRtAttr(unix.IFLA_MTU, nl.Uint32Attr(uint32(op.MTU))))
	info := nl.NewRtAttr(unix.IFLA_LINKINFO, nil)
	info.AddRtAttr(nl.IFLA_INFO_KIND, nl.NonZeroTerminated("ip6gre"))
	data := info.AddRtAttr(nl.IFLA_INFO_DATA, nil)
	data.AddRtAttr(nl.IFLA_GRE_LINK, nl.Uint32Attr(uint32(under)))
	data.AddRtAttr(nl.IFLA_GRE_LOCAL, op.Local.AsSlice())
	data.AddRtAttr(nl.IFLA_GRE_REMOTE, op.Remote.AsSlice())
	data.AddRtAttr(nl.IFLA_GRE_TTL, nl.Uint8Attr(tunnelHops))
	data.AddRtAttr(nl.IFLA_GRE_FLAGS, nl.Uint32Attr(noEncapsulationLimit))
	r.AddData(info)
	_, err := r.Execute(unix.NETLINK_ROUTE, 0)
	return err
}

// netkit makes each end in its own namespace.
func (b *builder) netkit(op network.Netkit) error {
	s, err := b.in(op.Primary.In)
	if err != nil {
		return err
	}
	peer, err := b.in(op.Peer.In)
	if err != nil {
		return err
	}
	b.expect(op.Primary.Device)
	b.expect(op.Peer.Device)
	b.veths++
	err = peer.ns.WithFD(func(fd int) error {
		n := &netlink.Netkit{
			LinkAttrs: attrs(op.Primary.Name, op.Primary.MAC, op.MTU), Mode: netlink.NETKIT_MODE_L3,
			Scrub: netlink.NETKIT_SCRUB_DEFAULT, PeerScrub: netlink.NETKIT_SCRUB_DEFAULT, // as the kernel itself has it
		}
		if op.Layer == 2 {
			n.Mode = netlink.NETKIT_MODE_L2
		}
		n.Index = firstIndex + b.veths
		far := attrs(op.Peer.Name, op.Peer.MAC, op.MTU)
		far.Namespace = netlink.NsFd(fd)
		n.SetPeerAttrs(&far)
		return s.nl.LinkAdd(n)
	})
	if err != nil {
		return err
	}
	if err := s.up(op.Primary.Name); err != nil {
		return err
	}
	return peer.up(op.Peer.Name)
}

// encapsulationTrial is the least that uses what a need names.
func encapsulationTrial(need network.Need, under network.Device) []network.Op {
	const mtu = network.DefaultMTU
	in := under.In
	a4, b4 := netip.MustParseAddr("198.18.0.1"), netip.MustParseAddr("198.18.0.2")
	a6, b6 := netip.MustParseAddr("2001:2::1"), netip.MustParseAddr("2001:2::2")
	over := network.Device{In: in, Name: "over"}
	switch need {
	case network.NeedIPIP:
		return []network.Op{network.Tunnel{Device: over, Kind: network.IPIP, Local: a4, Under: under, MTU: mtu}}
	case network.NeedIPIP6:
		return []network.Op{network.Tunnel{Device: over, Kind: network.IPIP, Local: a6, Under: under, MTU: mtu}}
	case network.NeedGRE:
		return []network.Op{network.Tunnel{Device: over, Kind: network.GRE, Local: a4, Remote: b4, Under: under, MTU: mtu}}
	case network.NeedGRE6:
		return []network.Op{network.Tunnel{Device: over, Kind: network.GRE, Local: a6, Remote: b6, Under: under, MTU: mtu}}
	case network.NeedGeneve:
		return []network.Op{network.Geneve{Device: over, ID: 1, Port: network.GenevePort, Remote: b4, MTU: mtu}}
	case network.NeedNetkit:
		return []network.Op{netkitTrial(in, mtu)}
	case network.NeedDatapath:
		return []network.Op{network.Datapath{Device: over, Ports: []string{under.Name}}}
	case network.NeedExternalVxlan:
		return []network.Op{network.Vxlan{Device: over, Under: under, External: true, Port: 4789, Local: a4, MTU: mtu}}
	case network.NeedWireGuard:
		return []network.Op{network.WireGuard{Device: over, Private: [32]byte{1}, Port: network.WireGuardPort, MTU: mtu}}
	case network.NeedESP:
		return []network.Op{protectionTrial(in, a4, b4)}
	case network.NeedESP6:
		return []network.Op{protectionTrial(in, a6, b6)}
	}
	return nil
}

func netkitTrial(in network.Space, mtu unit.Bytes) network.Netkit {
	end := func(name string) network.End { return network.End{Device: network.Device{In: in, Name: name}} }
	return network.Netkit{Primary: end("primary"), Peer: end("peer"), Layer: 3, MTU: mtu}
}

// protectionTrial has packets encrypted in both ways that networks use.
func protectionTrial(in network.Space, local, remote netip.Addr) network.Protect {
	from, to := netip.PrefixFrom(local, local.BitLen()), netip.PrefixFrom(remote, remote.BitLen())
	return network.Protect{
		In: in, Local: local, Remote: remote, Tunnel: true, Traffic: []network.Traffic{{From: from, To: to}},
		Out: network.Association{SPI: 257}, Incoming: network.Association{SPI: 258},
	}
}
