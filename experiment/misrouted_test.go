package experiment_test

import (
	"net/netip"
	"strings"
	"testing"

	"netdelta/insight"
	"netdelta/network"
	"netdelta/result"
)

// astray is the catalogue in which the routed network's packets take a second link between the nodes, by a better route. The
// plan still says the first.
func astray(t *testing.T) []network.Network {
	t.Helper()
	networks := network.Catalogue()
	for i, n := range networks {
		if n.Name != "routed" {
			continue
		}
		build := n.Build
		networks[i].Build = func(top network.Topology) network.Plan {
			p := build(top)
			p.Ops = append(p.Ops, detour(top)...)
			return p
		}
	}
	return networks
}

// detour is a cable between the nodes, past their switch, with routes to both halves of the pods' prefixes.
func detour(top network.Topology) []network.Op {
	device := func(i int) network.Device { return network.Device{In: network.InNode(i), Name: "eth1"} }
	end := func(i int) network.End {
		return network.End{Device: device(i), Role: network.RolePort, MAC: network.MAC{2, 0x6e, 0x64, 99, 0, byte(i)}}
	}
	ops := []network.Op{network.Veth{A: end(0), B: end(1), MTU: top.MTU}}
	for i := range 2 {
		own := netip.AddrFrom4([4]byte{198, 18, 1, byte(i + 1)})
		ops = append(ops, network.Address{Device: device(i), Prefix: netip.PrefixFrom(own, 24)})
	}
	for i := range 2 {
		pods := top.Nodes[1-i].PodPrefix
		ops = append(ops, network.Route{
			Device: device(i), To: netip.PrefixFrom(pods.Masked().Addr(), pods.Bits()+1), Via: netip.AddrFrom4([4]byte{198, 18, 1, byte(2 - i)}),
		})
	}
	return ops
}

// Trials whose packets went another way are named with what carried them, enter no delta, and cost no more than two builds;
// all others are proved.
func TestMisroutedTrialsAreNamedAndLeftOut(t *testing.T) {
	s := small([]string{"host", "routed", "vxlan"})
	c := setUpOn(t, astray(t), s, 3, nil)
	run := mustRun(t, c)
	for _, tr := range journal(t, c) {
		wrong := strings.HasPrefix(tr.Cell, "routed/cross-node")
		switch {
		case tr.Path == nil:
			t.Errorf("%s has no proof of its path", tr.ID())
		case !wrong && (!tr.Path.OK || len(tr.Path.Weak) > 0 || tr.Path.Sampled == 0):
			t.Errorf("%s is not proved: %+v", tr.ID(), tr.Path)
		case wrong && tr.Path.OK:
			t.Errorf("%s went astray and is proved: %+v", tr.ID(), tr.Path)
		case wrong && tr.Build > 1:
			t.Errorf("%s was still measured", tr.ID())
		}
	}
	for _, d := range run.Deltas {
		if d.Network == "routed" && d.Placement == result.CrossNode {
			t.Errorf("there is a delta of %s: %s %.2f", d.Cell, d.Metric, d.Ratio)
		}
	}
	named := 0
	for _, check := range run.Checks {
		if check.Check != insight.CheckPath || check.OK {
			continue
		}
		named++
		for _, want := range []string{"node0/eth1 carried", "node1/eth1 carried", "the plan says node0/eth0"} {
			if !strings.Contains(check.Observed, want) {
				t.Errorf("%s: %q does not say %q", check.Trial, check.Observed, want)
			}
		}
	}
	if named != 2 {
		t.Errorf("%d trials are named as misrouted, want 2", named)
	}
	if !strings.Contains(strings.Join(run.Notes, "\n"), "misrouted in 2 builds in a row") {
		t.Errorf("the run does not say that it gave up: %q", run.Notes)
	}
}
