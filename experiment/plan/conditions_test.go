package plan_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"netdelta/experiment/plan"
	"netdelta/experiment/study"
	"netdelta/result"
	"netdelta/unit"
)

// ids are the names of a network's cells under some conditions.
func ids(levels study.ConditionLevels) []string {
	s := &study.Study{
		Baseline: "host", Networks: []string{"host", "n"}, Placement: []result.Placement{result.SameNode},
		Workloads: []study.Workload{{Name: "w"}}, Factors: study.Levels{Conditions: levels},
	}
	var names []string
	for _, c := range plan.Expand(s) {
		if c.Network == "n" {
			names = append(names, c.ID[len("n/same-node/w"):])
		}
	}
	return names
}

func TestExpandNamesConditions(t *testing.T) {
	for _, c := range []struct {
		levels study.ConditionLevels
		want   []string
	}{
		{
			study.ConditionLevels{LinkRate: []unit.BitsPerSecond{unit.Gbit}, LinkDelay: []time.Duration{0, 10 * time.Millisecond}, LinkLoss: []float64{0.01}},
			[]string{"/link=1Gbit/loss=1%", "/link=1Gbit/delay=10ms/loss=1%"},
		},
		{
			study.ConditionLevels{LinkCount: []int{4}, BondHash: []string{"layer2", "layer3+4"}},
			[]string{"/bond=4x802.3ad,layer2", "/bond=4x802.3ad,layer3+4"},
		},
		{
			study.ConditionLevels{TSO: []result.Switch{result.Off}, GRO: []result.Switch{result.On, result.Off}, RPS: []result.Switch{result.On}},
			[]string{"/tso=off/gro=on/steering=on", "/tso=off/gro=off/steering=on"},
		},
		{
			study.ConditionLevels{Policy: []string{"none", "nftables"}, PolicyRules: []int{10, 1000}, QoS: []string{"best-effort"}},
			[]string{"/qos=best-effort", "/policy=nftables:10/qos=best-effort", "/policy=nftables:1000/qos=best-effort"},
		},
		{
			study.ConditionLevels{Service: []string{"pod", "ipvs"}, Services: []int{5}, Encryption: []string{"none", "ipsec"}},
			[]string{"", "/encryption=ipsec", "/service=ipvs:5", "/service=ipvs:5/encryption=ipsec"},
		},
	} {
		if d := cmp.Diff(c.want, ids(c.levels)); d != "" {
			t.Errorf("%+v: %s", c.levels, d)
		}
	}
}

// What comes to the same is one cell, however many levels mean nothing beside the others.
func TestExpandDropsWhatIsTheSame(t *testing.T) {
	got := ids(study.ConditionLevels{
		LinkCount: []int{1, 2}, BondMode: []string{"802.3ad", "active-backup"}, BondHash: []string{"layer2", "layer3+4"},
		Policy: []string{"none", "ebpf"}, PolicyRules: []int{10, 100, 1000},
	})
	// Bonds: none, LACP by either hash, active-backup (which doesn't hash); policies: none, and one for each number of rules.
	if len(got) != 4*4 {
		t.Errorf("have %d cells, want 16: %q", len(got), got)
	}
	slices.Sort(got)
	if len(slices.Compact(got)) != 16 {
		t.Errorf("two cells have one name: %q", got)
	}
}
