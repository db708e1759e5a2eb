package lab

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"reflect"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"netdelta/network"
	"netdelta/unit"
)

// builder carries operations out in the namespaces of one lab.
type builder struct {
	spaces map[network.Space]*space
	pairs  int // of joined devices, made so far
	// expected are the devices that come up a little after they are made, when the kernel has noticed that what they stand
	// on is up.
	expected map[network.Space]map[string]bool
	// addressed are the IPv6 addresses that take packets a little after they are given.
	addressed map[network.Space]map[netip.Addr]bool
	// companions are to be started when all devices are there, and closed in any case.
	companions companions
	// mark is the mark of the lab's processes; fixed says that pods must get the address that is planned, for they outlive the
	// network; learned is what plugins gave to pods, by their number.
	mark    string
	cards   *cards
	uplinks []string // the network cards for Uplinks, by their number
	fixed   bool
	learned map[int]learned
	// negotiating are the bonds whose two ends have to agree on their links.
	negotiating []network.Bond
	// notes say what could not be had as conditions ask.
	notes []string
	// steps carry out operations, by their types.
	steps map[reflect.Type]func(context.Context, network.Op) error
}

func newBuilder(spaces map[network.Space]*space) *builder {
	b := &builder{
		spaces: spaces, expected: map[network.Space]map[string]bool{}, addressed: map[network.Space]map[netip.Addr]bool{},
		steps: map[reflect.Type]func(context.Context, network.Op) error{},
	}
	b.linkSteps()
	b.entrySteps()
	b.programSteps()
	on(b, b.udpTunnel)
	on(b, b.uplink)
	on(b, b.takeCard)
	on(b, b.takeFunction)
	on(b, b.shape)
	on(b, b.impair)
	on(b, b.bond)
	on(b, b.features)
	on(b, b.steer)
	b.steps[reflect.TypeFor[network.Attach]()] = func(ctx context.Context, op network.Op) error { return b.attach(ctx, op.(network.Attach)) }
	return b
}

// on has operations of a type carried out by a function.
func on[T network.Op](b *builder, carryOut func(T) error) {
	b.steps[reflect.TypeFor[T]()] = func(_ context.Context, op network.Op) error { return carryOut(op.(T)) }
}

// expect has ready wait for a device.
func (b *builder) expect(d network.Device) {
	if b.expected[d.In] == nil {
		b.expected[d.In] = map[string]bool{}
	}
	b.expected[d.In][d.Name] = true
}

// expectAddress has ready wait for an address of IPv6.
func (b *builder) expectAddress(where network.Space, a netip.Addr) {
	if !a.Is6() {
		return
	}
	if b.addressed[where] == nil {
		b.addressed[where] = map[netip.Addr]bool{}
	}
	b.addressed[where][a] = true
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

// step carries out one operation.
func (b *builder) step(ctx context.Context, op network.Op) error {
	carryOut, known := b.steps[reflect.TypeOf(op)]
	if !known {
		return fmt.Errorf("the lab can't carry out %T", op)
	}
	return carryOut(ctx, op)
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

// with calls f with a namespace.
func (b *builder) with(where network.Space, f func(*space) error) error {
	s, err := b.in(where)
	if err != nil {
		return err
	}
	return f(s)
}

// within calls f in a thread inside a namespace.
func (b *builder) within(where network.Space, f func(*space) error) error {
	return b.with(where, func(s *space) error { return s.ns.Do(func() error { return f(s) }) })
}

// withFD calls f with a descriptor of a namespace.
func (b *builder) withFD(where network.Space, f func(fd int) error) error {
	return b.with(where, func(s *space) error { return s.ns.WithFD(f) })
}

// add makes a device.
func (b *builder) add(where network.Space, l netlink.Link) error {
	return b.with(where, func(s *space) error { return s.nl.LinkAdd(l) })
}

// linkSteps are the operations that make devices.
func (b *builder) linkSteps() {
	on(b, b.veth)
	on(b, b.netkit)
	on(b, b.ipTunnel)
	on(b, b.vxlan)
	on(b, b.enslave)
	on(b, func(op network.Bridge) error {
		snooping := false
		return b.add(op.In, &netlink.Bridge{LinkAttrs: attrs(op.Name, op.MAC, op.MTU), MulticastSnooping: &snooping})
	})
	on(b, func(op network.Macvlan) error {
		return b.overlaid(op.Device, op.Parent, func(a netlink.LinkAttrs) netlink.Link {
			return &netlink.Macvlan{LinkAttrs: a, Mode: netlink.MACVLAN_MODE_BRIDGE}
		}, op.MAC, op.MTU)
	})
	on(b, func(op network.IPVlan) error {
		mode, known := map[int]netlink.IPVlanMode{2: netlink.IPVLAN_MODE_L2, 3: netlink.IPVLAN_MODE_L3}[op.Layer]
		if !known {
			return layerError(op.Layer)
		}
		return b.overlaid(op.Device, op.Parent, func(a netlink.LinkAttrs) netlink.Link {
			return &netlink.IPVlan{LinkAttrs: a, Mode: mode}
		}, network.MAC{}, op.MTU)
	})
	on(b, func(op network.Geneve) error {
		return b.add(op.In, &netlink.Geneve{
			LinkAttrs: attrs(op.Name, op.MAC, op.MTU), ID: op.ID, Dport: op.Port, Remote: op.Remote.AsSlice(), Ttl: tunnelHops,
		})
	})
	on(b, func(op network.Datapath) error {
		return b.withFD(op.In, func(fd int) error { return addDatapath(fd, op) })
	})
	on(b, func(op network.WireGuard) error {
		return b.with(op.In, func(s *space) error { return s.wireGuard(op) })
	})
}

// layerError says that devices can't work at a layer of the network.
func layerError(layer int) error { return fmt.Errorf("layer %d: need 2 or 3", layer) }

// entrySteps are the operations that add something to the tables of a device or of a namespace.
func (b *builder) entrySteps() {
	on(b, func(op network.Sysctl) error { return b.within(op.In, func(s *space) error { return s.write(op) }) })
	on(b, b.address)
	on(b, func(op network.Route) error {
		r := &netlink.Route{Dst: ipNet(op.To), Scope: netlink.SCOPE_LINK}
		if op.Via.IsValid() {
			r.Gw, r.Scope = op.Via.AsSlice(), netlink.SCOPE_UNIVERSE
		}
		if op.OnLink {
			r.Flags = int(netlink.FLAG_ONLINK)
		}
		return b.route(op.Device, r)
	})
	on(b, func(op network.LocalRoute) error {
		return b.route(network.Device{In: op.In, Name: "lo"}, &netlink.Route{
			Type: unix.RTN_LOCAL, Table: unix.RT_TABLE_LOCAL, Scope: netlink.SCOPE_HOST,
			Dst: ipNet(netip.PrefixFrom(op.To, op.To.BitLen())), Src: op.From.AsSlice(),
		})
	})
	on(b, func(op network.Neighbour) error {
		s, i, err := b.device(op.Device)
		if err != nil {
			return err
		}
		return s.nl.NeighSet(&netlink.Neigh{LinkIndex: i, State: netlink.NUD_PERMANENT, IP: op.Address.AsSlice(), HardwareAddr: op.MAC[:]})
	})
	on(b, func(op network.Forward) error {
		s, i, err := b.device(op.Device)
		if err != nil {
			return err
		}
		return s.nl.NeighAppend(&netlink.Neigh{
			LinkIndex: i, Family: unix.AF_BRIDGE, State: netlink.NUD_PERMANENT, Flags: netlink.NTF_SELF,
			IP: op.To.AsSlice(), HardwareAddr: op.MAC[:],
		})
	})
	on(b, func(op network.Protect) error { return b.within(op.In, func(*space) error { return protect(op) }) })
	on(b, func(op network.Rules) error { return b.withFD(op.In, func(fd int) error { return addRules(fd, op) }) })
	on(b, func(op network.ServiceMap) error {
		return b.withFD(op.In, func(fd int) error { return addServiceMap(fd, op) })
	})
	on(b, func(op network.IPVS) error { return b.withFD(op.In, func(fd int) error { return addIPVS(fd, op) }) })
	on(b, func(op network.IPTables) error { return b.with(op.In, func(s *space) error { return s.restore(op) }) })
}

// route adds a route through a device.
func (b *builder) route(d network.Device, r *netlink.Route) error {
	s, i, err := b.device(d)
	if err != nil {
		return err
	}
	r.LinkIndex = i
	return s.nl.RouteAdd(r)
}

// attrs are the attributes of a device that comes up as it is made. A zero MAC leaves the choice to the kernel.
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
	return b.joined(op.A, op.B, func(index, peer int) netlink.Link {
		v := netlink.NewVeth(attrs(op.A.Name, op.A.MAC, op.MTU))
		v.Index = index
		v.PeerName, v.PeerHardwareAddr, v.PeerNamespace = op.B.Name, op.B.MAC[:], netlink.NsFd(peer)
		return v
	})
}

// netkit makes each end in its own namespace.
func (b *builder) netkit(op network.Netkit) error {
	mode, known := map[int]netlink.NetkitMode{2: netlink.NETKIT_MODE_L2, 3: netlink.NETKIT_MODE_L3}[op.Layer]
	if !known {
		return layerError(op.Layer)
	}
	return b.joined(op.Primary, op.Peer, func(index, peer int) netlink.Link {
		n := &netlink.Netkit{
			LinkAttrs: attrs(op.Primary.Name, op.Primary.MAC, op.MTU), Mode: mode,
			Scrub: netlink.NETKIT_SCRUB_DEFAULT, PeerScrub: netlink.NETKIT_SCRUB_DEFAULT, // as the kernel itself has it
		}
		n.Index = index
		far := attrs(op.Peer.Name, op.Peer.MAC, op.MTU)
		far.Namespace = netlink.NsFd(peer)
		n.SetPeerAttrs(&far)
		return n
	})
}

// joined makes two joined devices: link is given the number of the first and a descriptor of the second one's namespace.
func (b *builder) joined(near, far network.End, link func(index, peer int) netlink.Link) error {
	s, err := b.in(near.In)
	if err != nil {
		return err
	}
	peer, err := b.in(far.In)
	if err != nil {
		return err
	}
	b.expect(near.Device)
	b.expect(far.Device)
	b.pairs++
	if err := peer.ns.WithFD(func(fd int) error { return s.nl.LinkAdd(link(firstIndex+b.pairs, fd)) }); err != nil {
		return err
	}
	if err := s.up(near.Name); err != nil {
		return err
	}
	return peer.up(far.Name)
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
		if err := s.set(speak); err != nil {
			return err
		}
		given.Flags = unix.IFA_F_NODAD
		b.expectAddress(op.In, a)
	}
	return s.nl.AddrAdd(indexed(i), given)
}

func (b *builder) vxlan(op network.Vxlan) error {
	s, i, err := b.device(op.Under)
	if err != nil {
		return err
	}
	v := &netlink.Vxlan{LinkAttrs: attrs(op.Name, op.MAC, op.MTU), FlowBased: op.External, SrcAddr: op.Local.AsSlice(), Port: int(op.Port)}
	if !op.External {
		v.VxlanId, v.VtepDevIndex, v.Learning = int(op.ID), i, op.Learning
	}
	return s.nl.LinkAdd(v)
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
