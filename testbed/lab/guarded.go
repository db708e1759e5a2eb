package lab

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"netdelta/network"
)

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
