package network

import (
	"fmt"

	"netdelta/result"
)

// NotPossibleError says that a network can't be had under a condition, on any machine: what the condition asks for and how
// the network works exclude each other. The rest of a study goes on without that combination.
type NotPossibleError struct {
	// Network is the name of the network, Condition the level that it can't meet: "encryption=wireguard".
	Network, Condition string
	// Why says what keeps it from it: "its pods sit directly on the underlay's link".
	Why string
}

// Error implements error.
func (e *NotPossibleError) Error() string {
	return fmt.Sprintf("network %s is not possible with %s: %s", e.Network, e.Condition, e.Why)
}

// conditioned adds to a plan what the topology's conditions ask for on top of the network itself. The draft's ports have
// the conditions of the underlay already.
func conditioned(p Plan, t Topology) (Plan, error) {
	if err := linksRefused(p, t); err != nil {
		return p, err
	}
	p, err := policed(p.tuned(t.Conditions, t.Family), t)
	if err != nil {
		return p, err
	}
	return served(p, t)
}

// linksRefused is a *NotPossibleError for conditions of links that a network's packets don't meet. What a program sends by XDP goes
// past the queues of a node's port and the links of a bond; a link's rate holds all the same, at the switch's end of the next
// link.
func linksRefused(p Plan, t Topology) error {
	why, rated := "", true
	for _, op := range p.Ops {
		switch op.(type) {
		case Card:
			why, rated = "its packets cross real network cards, not the links of the lab", false
		case XDPRedirection:
			why = "its packets go past the queues of the nodes' ports, straight to the driver"
		}
	}
	if why == "" {
		return nil
	}
	c := t.Conditions
	for _, one := range []struct {
		asked     bool
		condition string
	}{
		{!rated && t.Rate > 0, "link.rate"}, {c.LinkDelay > 0, "link.delay"}, {c.LinkLoss > 0, "link.loss"}, {c.LinkCount > 1, "link.count"},
	} {
		if one.asked {
			return &NotPossibleError{p.Network, one.condition, why}
		}
	}
	return nil
}

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
	version := byFamily(family, "ipv4", "ipv6")
	var ops []Op
	seen := map[Device]bool{}
	for _, a := range Of[Address](p.Ops) {
		if seen[a.Device] {
			continue
		}
		seen[a.Device] = true
		for _, v := range []struct{ name, value string }{{"retrans_time_ms", "50"}, {"mcast_solicit", "60"}, {"ucast_solicit", "60"}} {
			ops = append(ops, Sysctl{In: a.In, Name: "net/" + version + "/neigh/" + a.Name + "/" + v.name, Value: v.value})
		}
	}
	return ops
}
