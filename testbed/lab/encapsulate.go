package lab

import (
	"fmt"
	"net"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"netdelta/network"
)

// tunnelHops is how far wrapped packets may go: as far as most packets may.
const tunnelHops = 64

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
	case op.Kind != network.GRE:
		return fmt.Errorf("unknown kind of tunnel %q", op.Kind)
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
