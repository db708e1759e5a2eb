package measure

import (
	"math/rand/v2"
	"slices"
	"testing"

	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed/lab"
	"netdelta/unit"
)

// The order of groups depends on the seed and the build alone: a run that is repeated with its seed visits networks in the same order.
// Cells share a group with their network, role and underlay.
func TestGroupsAreDrawnFromTheSeed(t *testing.T) {
	var cells []result.Cell
	var order []string
	for _, n := range []string{"host", "bridge", "vxlan", "macvlan"} {
		for _, mtu := range []unit.Bytes{0, 9000} {
			order = append(order, n+mtu.String())
			for _, w := range []string{"tcp-rr", "udp-rr"} {
				cells = append(cells, result.Cell{Network: n, Workload: w, Role: result.RoleCell, Params: result.Params{MTU: mtu}})
			}
		}
	}
	const seed, build = 42, 3
	m := NewContext(Config{Driver: lab.NewDriver(network.Catalogue())}, result.Run{Seed: seed, Cells: cells})
	rng := rand.New(rand.NewPCG(seed, build))
	rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	var got []string
	for _, g := range m.Groups(build, cells) {
		got = append(got, g.Network+g.mtu.String())
		if len(g.Cells) != 2 || g.Cells[0].Workload != "tcp-rr" || g.Cells[1].Workload != "udp-rr" {
			t.Errorf("group %s has the cells %v", g.Network, g.Cells)
		}
	}
	if !slices.Equal(got, order) {
		t.Errorf("groups %v, want %v", got, order)
	}
}

// TestPortsOfClients: in a namespace of its own a client has the port of its setting, in a machine's own one the kernel chooses: the baseline and its A/A
// control are both there.
func TestPortsOfClients(t *testing.T) {
	cells := []result.Cell{{Network: network.Metal, Workload: "udp-stream"}, {Network: "host", Workload: "udp-stream"}}
	m := NewContext(Config{Driver: lab.NewDriver(append(network.Found(), network.Catalogue()...))}, result.Run{Cells: cells})
	if metal, host := m.portsOf(cells[0]), m.portsOf(cells[1]); metal.Client != 0 || host.Client == 0 || metal.Server != host.Server {
		t.Errorf("the ports are %+v and %+v", metal, host)
	}
}
