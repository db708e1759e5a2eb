package insight_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"netdelta/insight"
	"netdelta/result"
)

// Networks of which each lacks something else are named once, with the one thing to do about it.
func TestAbsencesAreSortedByTheirMend(t *testing.T) {
	cell := func(network, unsupported, skipped string) result.Cell {
		return result.Cell{Network: network, Unsupported: unsupported, Skipped: skipped, InGuest: strings.HasSuffix(unsupported, "--testbed vm")}
	}
	ipvlan := "needs ipvlan links (CONFIG_IPVLAN); run it with --testbed vm"
	got := insight.Absences([]result.Cell{
		cell("host", "", ""),
		cell("ipvlan-l2", "network ipvlan-l2 is unsupported: "+ipvlan, ""),
		cell("ipvlan-l2", "network ipvlan-l2 is unsupported: "+ipvlan, ""),
		cell("ipvlan-l3", "network ipvlan-l3 is unsupported: "+ipvlan, ""),
		cell("gre", "network gre is unsupported: needs GRE tunnels (CONFIG_NET_IPGRE); run it with --testbed vm", ""),
		cell("sriov", "network sriov is unsupported: needs 2 cards; name them; or buy some", ""),
		cell("host", "", "left out by the time budget"),
		cell("bridge", "", "left out by the time budget"),
		cell("vxlan", "its baseline can't be measured", ""),
	})
	want := []insight.Absence{
		{
			Why:         "each needs one of ipvlan links (CONFIG_IPVLAN), GRE tunnels (CONFIG_NET_IPGRE); run it with --testbed vm",
			Unsupported: true, InGuest: true, Networks: []string{"ipvlan-l2", "ipvlan-l3", "gre"}, Cells: 4,
		},
		{Why: "needs 2 cards; name them; or buy some", Unsupported: true, Networks: []string{"sriov"}, Cells: 1},
		{Why: "left out by the time budget", Networks: []string{"host", "bridge"}, Cells: 2},
		{Why: "its baseline can't be measured", Unsupported: true, Networks: []string{"vxlan"}, Cells: 1},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// A lacking condition is not counted as a lacking network.
func TestAbsentConditions(t *testing.T) {
	bonds := "needs bonds (CONFIG_BONDING); run it with --testbed vm"
	got := insight.Absences([]result.Cell{
		{Network: "host"}, {Network: "ipip", Unsupported: "needs ipip; run it with --testbed vm", InGuest: true},
		{Network: "host", Unsupported: "network host is unsupported: " + bonds, InGuest: true},
		{Network: "ipip", Unsupported: "network ipip is unsupported: " + bonds, InGuest: true},
		{Network: "routed", Unsupported: "network routed is unsupported: " + bonds, InGuest: true}, {Network: "routed", Skipped: "left out"},
	})
	want := []insight.Absence{
		{Why: "each needs one of ipip, bonds (CONFIG_BONDING); run it with --testbed vm", Unsupported: true, InGuest: true, Networks: []string{"ipip"}, Cells: 2},
		{Why: bonds, Unsupported: true, InGuest: true, Conditions: true, Networks: []string{"host", "routed"}, Cells: 2},
		{Why: "left out", Networks: []string{"routed"}, Cells: 1},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
