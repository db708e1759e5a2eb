package insight

import (
	"slices"

	"netdelta/network"
	"netdelta/result"
)

// ReasonKind is where the difference between two ways to the pods of a cluster arises, or that there is none.
type ReasonKind int

// The kinds.
const (
	ReasonPods       ReasonKind = iota + 1 // Network takes more than Than, by the pods' own devices and, across nodes, by Wire
	ReasonNoTunnel                         // Network takes less than Than, since its packets go from node to node without Wire
	ReasonNoServices                       // Network is as Than: what leads to services adds nothing
	ReasonServices                         // Network takes more than Than: what leads to services does
)

// Reason is what the direct comparison of two ways to the pods of a cluster says of where a difference arises.
type Reason struct {
	Kind          ReasonKind
	Network, Than string
	Placement     result.Placement
	Ratio         float64 // Network over Than, in the setting's headline metric
	// Wire is what packets between the nodes' pods travel in: "vxlan"; "" where it is nothing, or not known. Proxy is how services are resolved:
	// "iptables"; "" where that is not known.
	Wire, Proxy string
}

// Reasons says where the differences between the ways to a cluster's pods arise, in one setting of a run. Nothing is said of what is not
// resolved, and of other testbeds.
func Reasons(run result.Run, part Part) []Reason {
	about := run.Environment.Cluster
	if about == nil || onNodesOfCluster(run) {
		return nil
	}
	wire := ""
	if part.Setting.Placement == result.CrossNode {
		wire = wireOf(run)
	}
	var all []Reason
	add := func(kind ReasonKind, name, than string, ratio float64) {
		all = append(all, Reason{kind, name, than, part.Setting.Placement, ratio, wire, about.Proxy})
	}
	if ratio, cost := part.held(podNetwork, "host"); cost > 0 {
		add(ReasonPods, podNetwork, "host", ratio)
	}
	if ratio, cost := part.held("nodeport", podNetwork); cost < 0 && wire != "" {
		add(ReasonNoTunnel, "nodeport", podNetwork, ratio)
	}
	switch ratio, cost := part.held("clusterip", podNetwork); {
	case ratio == 0:
	case cost == 0:
		add(ReasonNoServices, "clusterip", podNetwork, ratio)
	case cost > 0:
		add(ReasonServices, "clusterip", podNetwork, ratio)
	}
	return all
}

// wireOf is what packets between the pods of a cluster's nodes travel in: as they were seen, else as the cluster's product has it.
func wireOf(run result.Run) string {
	for _, p := range run.Paths {
		if p.Network == podNetwork && p.Placement == result.CrossNode && p.Seen != nil && p.Seen.Encapsulation != "" {
			if p.Seen.Encapsulation == "none" {
				return ""
			}
			return p.Seen.Encapsulation
		}
	}
	product, _ := network.FindProduct(run.Environment.Cluster.Product)
	return network.WireOf(product)
}

// held is a network over another of the setting, in its headline metric: the ratio, which is 0 where they were not compared or can't be told
// apart, and whether it costs more (1), less (-1), or the same to within the margin (0).
func (p Part) held(name, than string) (ratio float64, cost int) {
	for _, d := range p.Headlines() {
		if ratio, cost, are := p.judge(name, than, Name(d.Network, d.Path), d.Baseline, d.Ratio, d.RatioLow, d.RatioHigh, Differs(d)); are {
			return ratio, cost
		}
	}
	for _, c := range p.Contrasts {
		if ratio, cost, are := p.judge(p.cell(name), p.cell(than), c.Cell, c.Other, c.Ratio, c.RatioLow, c.RatioHigh, c.Cheaper != ""); are {
			return ratio, cost
		}
	}
	return 0, 0
}

// judge is held by a comparison of two networks, one over the other; false where it is of others.
func (p Part) judge(name, than, one, other string, ratio float64, low, high *float64, differs bool) (_ float64, cost int, are bool) {
	turned := one == than && other == name
	switch {
	case !turned && (one != name || other != than):
		return 0, 0, false
	case ratio == 0 || low == nil || high == nil:
		return 0, 0, true
	case *low >= 1-p.Margin && *high <= 1+p.Margin:
	case !differs:
		return 0, 0, true
	default:
		cost = 1
		if (ratio < 1) != slices.ContainsFunc(p.Headlines(), HigherBetter) {
			cost = -1
		}
	}
	if turned {
		return 1 / ratio, -cost, true
	}
	return ratio, cost, true
}

// cell is the ID of a network's cell in the setting, "" where it has none.
func (p Part) cell(name string) string {
	i := slices.IndexFunc(p.Cells, func(c result.Cell) bool { return c.Role != result.RoleControl && Name(c.Network, c.Path) == name })
	if i < 0 {
		return ""
	}
	return p.Cells[i].ID
}
