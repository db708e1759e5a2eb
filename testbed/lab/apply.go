package lab

import (
	"context"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"netdelta/network"
	"netdelta/unit"
)

// builder carries operations out in the namespaces of one lab.
type builder struct {
	spaces map[network.Space]*space
	veths  int // made so far
	// expected are the devices that come up a little after they are made, when the kernel has noticed that what they stand
	// on is up.
	expected map[network.Space]map[string]bool
	// addressed are the IPv6 addresses that take packets a little after they are given.
	addressed map[network.Space]map[netip.Addr]bool
	// companions are to be started when all devices are there, and closed in any case.
	companions companions
	// mark is that of the lab's processes; fixed says that pods must get the address that is planned, for they outlive the
	// network; learned is what plugins gave to pods, by their number.
	mark    string
	cards   *cards
	card    string // the network card for an Uplink
	fixed   bool
	learned map[int]learned
	// negotiating are the bonds whose two ends have to agree on their links.
	negotiating []network.Bond
	// notes say what could not be had as conditions ask.
	notes []string
}

func newBuilder(spaces map[network.Space]*space) *builder {
	return &builder{
		spaces: spaces, expected: map[network.Space]map[string]bool{}, addressed: map[network.Space]map[netip.Addr]bool{},
	}
}

// expect has ready wait for a device.
func (b *builder) expect(d network.Device) {
	if b.expected[d.In] == nil {
		b.expected[d.In] = map[string]bool{}
	}
	b.expected[d.In][d.Name] = true
}

// firstIndex is above the device numbers that the kernel gives by itself. The kernel tells a device that stands on another
// by its number differing from the other's, and is slow, up to a second, to notice that the rest have come up. The two ends
// of a veth pair, each in a namespace of its own, could well get the same number.
const firstIndex = 1000

// apply carries operations out in order.
func (b *builder) apply(ctx context.Context, ops []network.Op) error {
	for _, op := range ops {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := b.step(ctx, op); err != nil {
			return fmt.Errorf("%s: %w", op, privilege(err))
		}
	}
	return nil
}

// step carries out one operation that others may take part in, and end late.
func (b *builder) step(ctx context.Context, op network.Op) error {
	if a, is := op.(network.Attach); is {
		return b.attach(ctx, a)
	}
	return b.one(op)
}

// in finds a namespace.
func (b *builder) in(s network.Space) (*space, error) {
	if found := b.spaces[s]; found != nil {
		return found, nil
	}
	return nil, fmt.Errorf("the lab has no namespace %s", s)
}

// device finds a namespace and a device's index in it.
func (b *builder) device(d network.Device) (*space, int, error) {
	s, err := b.in(d.In)
	if err != nil {
		return nil, 0, err
	}
	i, err := s.link(d.Name)
	return s, i, err
}

// one carries out one operation.
func (b *builder) one(op network.Op) error {
	switch op := op.(type) {
	case network.Sysctl:
		s, err := b.in(op.In)
		if err != nil {
			return err
		}
		return s.ns.Do(func() error { return writeSysctl(op) })
	case network.Veth:
		return b.veth(op)
	case network.Bridge:
		s, err := b.in(op.In)
		if err != nil {
			return err
		}
		snooping := false
		return s.nl.LinkAdd(&netlink.Bridge{LinkAttrs: attrs(op.Name, op.MAC, op.MTU), MulticastSnooping: &snooping})
	case network.Macvlan:
		return b.overlaid(op.Device, op.Parent, func(a netlink.LinkAttrs) netlink.Link {
			return &netlink.Macvlan{LinkAttrs: a, Mode: netlink.MACVLAN_MODE_BRIDGE}
		}, op.MAC, op.MTU)
	case network.IPVlan:
		mode := netlink.IPVLAN_MODE_L2
		if op.Layer == 3 {
			mode = netlink.IPVLAN_MODE_L3
		}
		return b.overlaid(op.Device, op.Parent, func(a netlink.LinkAttrs) netlink.Link {
			return &netlink.IPVlan{LinkAttrs: a, Mode: mode}
		}, network.MAC{}, op.MTU)
	case network.Vxlan:
		return b.vxlan(op)
	case network.Enslave:
		return b.enslave(op)
	case network.Shape, network.Impair, network.Bond, network.Features, network.Steer:
		return b.tune(op)
	case network.Tunnel, network.Geneve, network.Netkit, network.Datapath, network.WireGuard, network.Protect:
		return b.encapsulate(op)
	case network.UDPTunnel:
		return b.udpTunnel(op)
	case network.Uplink:
		return b.uplink(op)
	case network.Card:
		return b.takeCard(op)
	case network.Function:
		return b.takeFunction(op)
	case network.Rules, network.IPTables, network.ServiceMap, network.IPVS:
		return b.rule(op)
	case network.Redirection, network.Guard, network.Balance, network.JoinSockets, network.XDPRedirection:
		return b.program(op)
	}
	return b.entry(op)
}

// entry carries out the operations that add something to a device's tables.
func (b *builder) entry(op network.Op) error {
	switch op := op.(type) {
	case network.Address:
		return b.address(op)
	case network.Route:
		s, i, err := b.device(op.Device)
		if err != nil {
			return err
		}
		r := &netlink.Route{LinkIndex: i, Dst: ipNet(op.To), Scope: netlink.SCOPE_LINK}
		if op.Via.IsValid() {
			r.Gw, r.Scope = op.Via.AsSlice(), netlink.SCOPE_UNIVERSE
		}
		if op.OnLink {
			r.Flags = int(netlink.FLAG_ONLINK)
		}
		return s.nl.RouteAdd(r)
	case network.Neighbour:
		s, i, err := b.device(op.Device)
		if err != nil {
			return err
		}
		return s.nl.NeighSet(&netlink.Neigh{LinkIndex: i, State: netlink.NUD_PERMANENT, IP: op.Address.AsSlice(), HardwareAddr: op.MAC[:]})
	case network.LocalRoute:
		return b.localRoute(op)
	case network.Forward:
		s, i, err := b.device(op.Device)
		if err != nil {
			return err
		}
		return s.nl.NeighAppend(&netlink.Neigh{
			LinkIndex: i, Family: unix.AF_BRIDGE, State: netlink.NUD_PERMANENT, Flags: netlink.NTF_SELF,
			IP: op.To.AsSlice(), HardwareAddr: op.MAC[:],
		})
	}
	return fmt.Errorf("the lab can't carry out %T", op)
}

// attrs are those of a device that comes up as it is made. A zero MAC leaves the choice to the kernel.
func attrs(name string, addr network.MAC, mtu unit.Bytes) netlink.LinkAttrs {
	a := netlink.NewLinkAttrs()
	a.Name, a.MTU, a.Flags = name, int(mtu), net.FlagUp
	if addr != (network.MAC{}) {
		a.HardwareAddr = addr[:]
	}
	return a
}

// veth makes each end in its own namespace.
func (b *builder) veth(op network.Veth) error {
	s, err := b.in(op.A.In)
	if err != nil {
		return err
	}
	peer, err := b.in(op.B.In)
	if err != nil {
		return err
	}
	b.expect(op.A.Device)
	b.expect(op.B.Device)
	b.veths++
	err = peer.ns.WithFD(func(fd int) error {
		v := netlink.NewVeth(attrs(op.A.Name, op.A.MAC, op.MTU))
		v.Index = firstIndex + b.veths
		v.PeerName, v.PeerHardwareAddr, v.PeerNamespace = op.B.Name, op.B.MAC[:], netlink.NsFd(fd)
		return s.nl.LinkAdd(v)
	})
	if err != nil {
		return err
	}
	return peer.up(op.B.Name)
}

// overlaid makes a device over a parent in another namespace. It gets its name there: some kernels (6.12) refuse one that a device
// in the parent's namespace has.
func (b *builder) overlaid(d, parent network.Device, link func(netlink.LinkAttrs) netlink.Link, addr network.MAC, mtu unit.Bytes) error {
	s, i, err := b.device(parent)
	if err != nil {
		return err
	}
	target, err := b.in(d.In)
	if err != nil {
		return err
	}
	b.expect(d)
	const passing = "passing"
	err = target.ns.WithFD(func(fd int) error {
		a := attrs(passing, addr, mtu)
		a.Flags, a.ParentIndex, a.Namespace = 0, i, netlink.NsFd(fd) // one that is up can't be renamed
		return s.nl.LinkAdd(link(a))
	})
	if err != nil {
		return err
	}
	made, err := target.link(passing)
	if err != nil {
		return err
	}
	if err := target.nl.LinkSetName(indexed(made), d.Name); err != nil {
		return fmt.Errorf("name it: %w", err)
	}
	return target.up(d.Name)
}

// address gives a device an address. One of IPv6 makes the device speak IPv6, and can be used at once, without asking whether
// another host has it.
func (b *builder) address(op network.Address) error {
	s, i, err := b.device(op.Device)
	if err != nil {
		return err
	}
	given := &netlink.Addr{IPNet: ipNet(op.Prefix)}
	if a := op.Prefix.Addr(); a.Is6() {
		speak := network.Sysctl{In: op.In, Name: "net/ipv6/conf/" + op.Name + "/disable_ipv6", Value: "0"}
		if err := s.set([]network.Sysctl{speak}); err != nil {
			return err
		}
		given.Flags = unix.IFA_F_NODAD
		if b.addressed[op.In] == nil {
			b.addressed[op.In] = map[netip.Addr]bool{}
		}
		b.addressed[op.In][a] = true
	}
	return s.nl.AddrAdd(indexed(i), given)
}

func (b *builder) vxlan(op network.Vxlan) error {
	s, i, err := b.device(op.Under)
	if err != nil {
		return err
	}
	if op.External {
		return s.nl.LinkAdd(&netlink.Vxlan{
			LinkAttrs: attrs(op.Name, op.MAC, op.MTU), FlowBased: true, SrcAddr: op.Local.AsSlice(), Port: int(op.Port),
		})
	}
	return s.nl.LinkAdd(&netlink.Vxlan{
		LinkAttrs: attrs(op.Name, op.MAC, op.MTU), VxlanId: int(op.ID), VtepDevIndex: i, SrcAddr: op.Local.AsSlice(),
		Port: int(op.Port), Learning: op.Learning,
	})
}

func (b *builder) enslave(op network.Enslave) error {
	s, i, err := b.device(op.Device)
	if err != nil {
		return err
	}
	master, err := s.link(op.Bridge)
	if err != nil {
		return err
	}
	b.expect(network.Device{In: op.In, Name: op.Bridge})
	return s.nl.LinkSetMasterByIndex(indexed(i), master)
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}
