package lab

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"netdelta/network"
	"netdelta/result"
)

// rule carries out the operations that guard packets or translate their addresses.
func (b *builder) rule(op network.Op) error {
	switch op := op.(type) {
	case network.Rules:
		return b.withFD(op.In, func(fd int) error { return addRules(fd, op) })
	case network.IPTables:
		s, err := b.in(op.In)
		if err != nil {
			return err
		}
		return s.restore(op)
	case network.ServiceMap:
		return b.withFD(op.In, func(fd int) error { return addServiceMap(fd, op) })
	case network.IPVS:
		return b.withFD(op.In, func(fd int) error { return addIPVS(fd, op) })
	}
	return fmt.Errorf("the lab can't carry out %T", op)
}

// localRoute has a namespace take an address for its own.
func (b *builder) localRoute(op network.LocalRoute) error {
	s, i, err := b.device(network.Device{In: op.In, Name: "lo"})
	if err != nil {
		return err
	}
	return s.nl.RouteAdd(&netlink.Route{
		LinkIndex: i, Type: unix.RTN_LOCAL, Table: unix.RT_TABLE_LOCAL, Scope: netlink.SCOPE_HOST,
		Dst: ipNet(netip.PrefixFrom(op.To, op.To.BitLen())), Src: op.From.AsSlice(),
	})
}

// withFD calls f with a descriptor of a namespace.
func (b *builder) withFD(in network.Space, f func(fd int) error) error {
	s, err := b.in(in)
	if err != nil {
		return err
	}
	return s.ns.WithFD(f)
}

// ruledSpaces are the operations that left rules, by the namespaces where they did.
func ruledSpaces(ops []network.Op) map[network.Space][]network.Op {
	all := map[network.Space][]network.Op{}
	for _, op := range ops {
		switch op := op.(type) {
		case network.Rules:
			all[op.In] = append(all[op.In], op)
		case network.IPTables:
			all[op.In] = append(all[op.In], op)
		case network.ServiceMap:
			all[op.In] = append(all[op.In], op)
		case network.IPVS:
			all[op.In] = append(all[op.In], op)
		}
	}
	return all
}

// unrule takes out of a namespace that outlives its network what operations left there, and what the kernel remembers of
// connections whose addresses it translated: in the next network they may lead elsewhere.
func (s *space) unrule(ops []network.Op) error {
	if len(ops) == 0 {
		return nil
	}
	var errs []error
	tables := false
	for _, op := range ops {
		switch op := op.(type) {
		case network.Rules, network.ServiceMap:
			tables = true
		case network.IPTables:
			errs = append(errs, s.restore(op.Cleared()))
		case network.IPVS:
			errs = append(errs, s.ns.WithFD(deleteIPVS))
		}
	}
	if tables {
		errs = append(errs, s.ns.WithFD(deleteRules))
	}
	errs = append(errs, s.forgetConnections())
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("delete the firewall rules in %s: %w", s.name, err)
	}
	return nil
}

// forgetConnections empties the table of connections. A kernel that has none, or none to be asked for, remembers nothing.
func (s *space) forgetConnections() error {
	return s.ns.Do(func() error {
		h, err := netlink.NewHandle(unix.NETLINK_NETFILTER)
		if err != nil {
			return fmt.Errorf("open a netlink socket: %w", err)
		}
		defer h.Close()
		if err := h.ConntrackTableFlush(netlink.ConntrackTable); err != nil && !missing(err) && !errors.Is(err, unix.EINVAL) {
			return fmt.Errorf("forget connections: %w", err)
		}
		return nil
	})
}

// ruleTrial is the least that uses what a policy or a service needs.
func ruleTrial(need network.Need, in network.Space) []network.Op {
	family := result.IPv4
	some := network.VirtualAddress{Virtual: netip.AddrFrom4([4]byte{198, 18, 128, 1}), Backend: netip.AddrFrom4([4]byte{198, 19, 0, 10})}
	switch need {
	case network.NeedIPTables6, network.NeedServiceMap6, network.NeedIPVS6:
		family = result.IPv6
		some = network.VirtualAddress{Virtual: netip.MustParseAddr("2001:2:0:8000::1"), Backend: netip.MustParseAddr("2001:2:0:100::10")}
	}
	switch need {
	case network.NeedIPTables, network.NeedIPTables6:
		return []network.Op{
			network.IPTables{In: in, Family: family, Table: "filter", Lines: []network.Line{
				":INPUT ACCEPT [0:0]", "-A INPUT -m conntrack --ctstate ESTABLISHED -j ACCEPT",
			}},
			network.IPTables{In: in, Family: family, Table: "nat", Lines: []network.Line{
				":OUTPUT ACCEPT [0:0]", network.Line("-A OUTPUT -d " + some.Virtual.String() + " -j DNAT --to-destination " + some.Backend.String()),
			}},
		}
	case network.NeedServiceMap, network.NeedServiceMap6:
		return []network.Op{network.ServiceMap{In: in, Family: family, Services: []network.VirtualAddress{some}}}
	case network.NeedIPVS, network.NeedIPVS6:
		return []network.Op{network.IPVS{In: in, Family: family, Services: []network.VirtualAddress{some}}}
	}
	return nil
}
