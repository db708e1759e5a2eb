package network

import "netdelta/result"

// tuned adds to a plan what conditions ask of its devices. It comes last, since it is about all devices.
func (p Plan) tuned(c result.Conditions, family result.Family) Plan {
	if c.LinkLoss > 0 {
		p.Ops = append(p.Ops, p.patience(family)...)
	}
	for _, s := range p.Spaces() {
		if s.Kind == SwitchSpace {
			continue
		}
		if f := (Features{In: s, TSO: c.TSO, GSO: c.GSO, GRO: c.GRO, LRO: c.LRO}); len(f.Each()) > 0 {
			p.Ops = append(p.Ops, f)
		}
		if c.RPS != "" {
			p.Ops = append(p.Ops, Steer{In: s, To: c.RPS})
		}
	}
	return p
}

// patience has devices ask for the address of a neighbour more often, and sooner again, than the three times with a second
// between them that the kernel does: with a tenth of all packets lost, one in a thousand neighbours would not be found
// otherwise, and many a first packet would be seconds late.
func (p Plan) patience(family result.Family) []Op {
	version := "ipv4"
	if family == result.IPv6 {
		version = "ipv6"
	}
	var ops []Op
	seen := map[Device]bool{}
	for _, op := range p.Ops {
		a, ok := op.(Address)
		if !ok || seen[a.Device] {
			continue
		}
		seen[a.Device] = true
		for _, v := range []struct{ name, value string }{{"retrans_time_ms", "50"}, {"mcast_solicit", "60"}, {"ucast_solicit", "60"}} {
			ops = append(ops, Sysctl{In: a.In, Name: "net/" + version + "/neigh/" + a.Name + "/" + v.name, Value: v.value})
		}
	}
	return ops
}
