package plan_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"netdelta/experiment/plan"
	"netdelta/experiment/study"
	"netdelta/result"
	"netdelta/unit"
)

// ids are the names of a network's cells under some conditions.
func ids(levels study.Levels) []string {
	s := &study.Study{
		Baseline: "host", Networks: []string{"host", "n"}, Placement: []result.Placement{result.SameNode},
		Workloads: []study.Workload{{Name: "w"}}, Factors: levels,
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
		levels study.Levels
		want   []string
	}{
		{
			study.Levels{"link.rate": {unit.BitsPerSecond(unit.Gbit)}, "link.delay": {time.Duration(0), 10 * time.Millisecond}, "link.loss": {0.01}},
			[]string{"/link=1Gbit/loss=1%", "/link=1Gbit/delay=10ms/loss=1%"},
		},
		{
			study.Levels{"link.count": {4}, "bond.xmit_hash_policy": {"layer2", "layer3+4"}},
			[]string{"/bond=4x802.3ad,layer2", "/bond=4x802.3ad,layer3+4"},
		},
		{
			study.Levels{"link.nodes": {"none", "node0:2x25Gbit/s+node1:10Gbit/s"}},
			[]string{"", "/nodes=node0:2x25Gbit+node1:10Gbit/bond=1x802.3ad,layer2"},
		},
		{
			study.Levels{"offload.tso": {string(result.Off)}, "offload.gro": {string(result.On), string(result.Off)}, "rps": {string(result.On)}},
			[]string{"/tso=off/gro=on/steering=on", "/tso=off/gro=off/steering=on"},
		},
		{
			study.Levels{"policy": {"none", "nftables"}, "policy.rules": {10, 1000}, "qos": {"best-effort"}},
			[]string{"/qos=best-effort", "/policy=nftables:10/qos=best-effort", "/policy=nftables:1000/qos=best-effort"},
		},
		{
			study.Levels{"service": {"pod", "ipvs"}, "service.count": {5}, "encryption": {"none", "ipsec"}},
			[]string{"", "/encryption=ipsec", "/service=ipvs:5", "/service=ipvs:5/encryption=ipsec"},
		},
	} {
		if d := cmp.Diff(c.want, ids(c.levels)); d != "" {
			t.Errorf("%+v: %s", c.levels, d)
		}
	}
}

// Equal combinations are one cell, however many levels have no effect in combination with the others.
func TestExpandDropsWhatIsTheSame(t *testing.T) {
	got := ids(study.Levels{
		"link.count": {1, 2}, "bond.mode": {"802.3ad", "active-backup"}, "bond.xmit_hash_policy": {"layer2", "layer3+4"},
		"policy": {"none", "ebpf"}, "policy.rules": {10, 100, 1000},
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

// A budget that does not hold everything leaves loads out, not levels: an effect needs the levels of one load together.
func TestFitKeepsLevelsTogether(t *testing.T) {
	s := &study.Study{
		Baseline: "host", Networks: []string{"host", "n"}, Placement: []result.Placement{result.SameNode, result.CrossNode},
		Workloads: []study.Workload{{Name: "w", Levels: study.Levels{"message": {unit.Bytes(300), unit.Bytes(500), unit.Bytes(1024), unit.Bytes(2048)}}}},
		Factors:   study.Levels{"policy": {"none", "nftables", "ebpf"}},
	}
	cells := plan.Expand(s)
	rules := plan.Rules{Builds: 12, MinBuilds: 6, MinRounds: 10, Budget: time.Hour}
	all, err := plan.Fit(cells, costs(), rules)
	if err != nil || len(plan.Measured(all.Cells)) != len(cells) {
		t.Fatalf("%v, %d of %d cells", err, len(plan.Measured(all.Cells)), len(cells))
	}
	rules.Budget = all.Whole / 2
	some, err := plan.Fit(cells, costs(), rules)
	if err != nil {
		t.Fatal(err)
	}
	levels := map[unit.Bytes]map[string]bool{}
	for _, c := range plan.Measured(some.Cells) {
		if levels[c.Params.Message] == nil {
			levels[c.Params.Message] = map[string]bool{}
		}
		levels[c.Params.Message][c.Params.Conditions.Policy] = true
	}
	if len(levels) == 0 || len(levels) == 4 {
		t.Errorf("half of the budget holds %d loads of 4", len(levels))
	}
	for message, l := range levels {
		if len(l) != 3 {
			t.Errorf("%v has the levels %v", message, l)
		}
	}
	if want := "w 300B at 3 levels, w 2KiB at 3 levels; left out: "; !strings.Contains(some.Note, want) {
		t.Errorf("note %q lacks %q", some.Note, want)
	}
	// Too little for all levels of even one load: then the first ones.
	rules.Budget = 8 * time.Second
	few, err := plan.Fit(cells, costs(), rules)
	if err != nil {
		t.Fatal(err)
	}
	if got := result.Settings(plan.Measured(few.Cells)); len(got) == 0 || got[0].Params.Conditions.Policy != "" {
		t.Errorf("kept %+v", got)
	}
	t.Log(few.Note)
}
