package study_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"netdelta/experiment/studies"
	"netdelta/experiment/study"
	"netdelta/result"
	"netdelta/unit"
)

func latency(t *testing.T) *study.Study {
	t.Helper()
	f, _ := studies.Find("latency")
	s, err := study.Parse(f.Path(), f.Data, whole())
	if err != nil {
		t.Fatal(err)
	}
	s.Networks, s.Claims = known().Networks, nil // messages tell of these networks
	return s
}

func ptr[T any](v T) *T { return &v }

func TestOverride(t *testing.T) {
	s := latency(t)
	before := s.Clone()
	got, err := s.Override(study.Overrides{
		Networks: []string{"vxlan", " macvlan"}, Workloads: []string{"tcp-crr", "tcp-rr"}, Placement: []string{"cross-node"},
		TimeBudget: ptr(15 * time.Minute), Builds: ptr(8), Blocks: ptr(7), Seed: ptr(uint64(5)), MTU: []unit.Bytes{1500, 9000},
	}, known())
	if err != nil {
		t.Fatal(err)
	}
	want := before.Clone()
	want.Networks = []string{"host", "vxlan", "macvlan"} // the baseline takes part though it is not named
	want.Workloads = []study.Workload{{Name: "tcp-crr"}, {Name: "tcp-rr", Levels: study.Levels{"message": {unit.Bytes(300), unit.Bytes(500), unit.Bytes(1024), unit.Bytes(2048), unit.Bytes(65536)}}},
		{Name: "tcp-rr", Levels: study.Levels{"message": {unit.Bytes(300)}, "regime": {"waking"}}}}
	want.Named = true
	want.Placement = []result.Placement{result.CrossNode}
	want.Design.TimeBudget, want.Design.Builds, want.Design.Blocks, want.Design.Seed = 15*time.Minute, 8, 7, 5
	want.Testbed.Link.MTU, want.Factors = 9000, study.Levels{"mtu": {unit.Bytes(1500), unit.Bytes(9000)}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(before, s); d != "" {
		t.Errorf("the study itself was changed: %s", d)
	}
	got.Named = false // a file does not say it
	again(t, got)
}

// Where a study says how many blocks there are, a number of builds is one of them.
func TestOverrideBuildsOfBlocks(t *testing.T) {
	s := latency(t)
	s.Design.Blocks = 10
	got, err := s.Override(study.Overrides{Builds: ptr(5)}, known())
	if err != nil || got.Design.Blocks != 5 {
		t.Errorf("%d blocks, %v", got.Design.Blocks, err)
	}
	if got, err = s.Override(study.Overrides{Builds: ptr(5), Blocks: ptr(4)}, known()); err != nil || got.Design.Blocks != 4 {
		t.Errorf("with --blocks: %d blocks, %v", got.Design.Blocks, err)
	}
}

// The flag takes the place of all that the study says of families.
func TestOverrideFamily(t *testing.T) {
	s := latency(t)
	s.Factors = study.Levels{"family": {"ipv4"}}
	s.Workloads[0].Levels["family"] = []any{"ipv4", "ipv6"}
	got, err := s.Override(study.Overrides{Family: []string{"ipv6", " ipv4"}}, known())
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]any{"ipv6", "ipv4"}, got.Factors["family"]); d != "" || got.Workloads[0].Levels["family"] != nil {
		t.Errorf("factor: %s; of the first workload: %v", d, got.Workloads[0].Levels["family"])
	}
	again(t, got)
}

// A study of other workloads alone asks another question, and tests none of the claims.
func TestOverrideOfAllWorkloads(t *testing.T) {
	got, err := latency(t).Override(study.Overrides{Workloads: []string{"http", "block"}}, whole())
	if err != nil {
		t.Fatal(err)
	}
	if got.Question != "What does each container network cost http and block?" || got.Claims != nil {
		t.Errorf("the question is %q, with %d claims", got.Question, len(got.Claims))
	}
}

// One MTU of a study that has levels of it stays a level: the study's claims speak of it.
func TestOverrideOneMTUStaysALevel(t *testing.T) {
	s := latency(t)
	s.Workloads[0].Levels = study.Levels{"mtu": {unit.Bytes(1500), unit.Bytes(9000)}}
	got, err := s.Override(study.Overrides{Factors: []string{"mtu=1500"}}, known())
	if err != nil {
		t.Fatal(err)
	}
	want := study.Levels{"mtu": {unit.Bytes(1500)}}
	if d := cmp.Diff(want, got.Factors); d != "" || got.Testbed.Link.MTU != 1500 {
		t.Errorf("factors: %s; links of %v", d, got.Testbed.Link.MTU)
	}
}

func TestOverrideOneMTUIsNoFactor(t *testing.T) {
	got, err := latency(t).Override(study.Overrides{MTU: []unit.Bytes{9000}}, known())
	if err != nil || got.Testbed.Link.MTU != 9000 || got.Factors["mtu"] != nil {
		t.Errorf("link mtu %v, factor %v (%v)", got.Testbed.Link.MTU, got.Factors["mtu"], err)
	}
}

func TestOverrideRefuses(t *testing.T) {
	for _, c := range []struct {
		o    study.Overrides
		want string
	}{
		{study.Overrides{Networks: []string{"host", "brigde"}}, `--networks: unknown network "brigde"; did you mean "bridge"?`},
		{study.Overrides{Networks: []string{"vxlan", "vxlan"}}, `--networks: network vxlan is there twice; leave one out`},
		{study.Overrides{Networks: []string{""}}, `--networks: unknown network ""; known are bridge, bridge-nat, host, ipvlan-l2, ipvlan-l3, macvlan, routed, vxlan, vxlan-routed`},
		{study.Overrides{Networks: []string{"\x1b[2J"}}, `--networks: unknown network "\x1b[2J"; known are bridge, bridge-nat, host, ipvlan-l2, ipvlan-l3, macvlan, routed, vxlan, vxlan-routed`},
		{study.Overrides{Baseline: "hots"}, `--baseline: unknown network "hots"; did you mean "host"?`},
		{study.Overrides{Workloads: []string{"tcprr"}}, `--workloads: unknown workload "tcprr"; did you mean "tcp-rr"?`},
		{study.Overrides{Placement: []string{"same"}}, `--placement: unknown placement "same"; did you mean "same-node"?`},
		{study.Overrides{TimeBudget: ptr(time.Duration(0))}, `--time-budget: time budget 0s is no time; write for example 60s or 15m`},
		{study.Overrides{TimeBudget: ptr(10 * time.Millisecond)}, `--time-budget: time budget 10ms is less than one round of the smallest subset: 20 cells of 5ms are 100ms; give it more time or fewer networks`},
		{study.Overrides{Builds: ptr(0), Blocks: ptr(-1)}, "--blocks: blocks -1 is outside 1 to 1000\n--builds: builds 0 is outside 1 to 1000"},
		{study.Overrides{MTU: []unit.Bytes{600}}, "--mtu: network vxlan over mtu 600 leaves pods less than 1280 bytes; raise it, or leave the network out\n" +
			"--mtu: network vxlan-routed over mtu 600 leaves pods less than 1280 bytes; raise it, or leave the network out"},
		{study.Overrides{Family: []string{"ipv4", "ip6"}}, `--family: unknown family "ip6"; did you mean "ipv6"?`},
		{study.Overrides{Family: []string{"ipv6", "ipv6"}}, `--family: family "ipv6" is there twice; leave one out`},
		{study.Overrides{Family: []string{"ipv6"}, MTU: []unit.Bytes{1340}}, "--mtu: network vxlan over mtu 1340 leaves pods less than 1280 bytes; raise it, or leave the network out\n" +
			"--mtu: network vxlan-routed over mtu 1340 leaves pods less than 1280 bytes; raise it, or leave the network out"},
		{study.Overrides{MTU: []unit.Bytes{1500, 1500}}, "--mtu: mtu 1500B is there twice; leave one out"},
		{study.Overrides{MTU: []unit.Bytes{68}}, `--mtu: mtu 68 is outside 576 to 65535`},
		{study.Overrides{Rounds: ptr(0)}, `--rounds: rounds 0 is outside 1 to 100000`},
		{study.Overrides{Burst: ptr(time.Nanosecond)}, `--burst: burst 1ns is outside 1ms to 10s`},
		{study.Overrides{TimeBudget: ptr(-time.Second)}, `--time-budget: time budget -1s is no time; write for example 60s or 15m`},
	} {
		s, err := latency(t).Override(c.o, known())
		var all study.Errors
		if s != nil || !errors.As(err, &all) {
			t.Errorf("%+v: want no study and study.Errors, have %v and %v", c.o, s, err)
			continue
		}
		if d := cmp.Diff(c.want, err.Error()); d != "" {
			t.Errorf("%+v: %s", c.o, d)
		}
	}
}

// A factor takes the place of the levels of all workloads, whatever the study says of it.
func TestOverrideFactors(t *testing.T) {
	s := latency(t)
	s.Workloads[0].Levels["policy"] = []any{"iptables"}
	got, err := s.Override(study.Overrides{Factors: []string{
		"policy=none, nftables", "policy.rules=10,1000", "message=64", "mtu=1500,9000", "link.delay=0s,500us", "link.loss=1%", "offload.gro=off",
	}}, known())
	if err != nil {
		t.Fatal(err)
	}
	want := study.Levels{"message": {unit.Bytes(64)}, "mtu": {unit.Bytes(1500), unit.Bytes(9000)},
		"policy": {"none", "nftables"}, "policy.rules": {10, 1000}, "link.delay": {time.Duration(0), 500 * time.Microsecond},
		"link.loss": {float64(0.01)}, "offload.gro": {string(result.Off)}}
	if d := cmp.Diff(want, got.Factors); d != "" || got.Testbed.Link.MTU != 9000 {
		t.Errorf("factors: %s; links of %v", d, got.Testbed.Link.MTU)
	}
	for _, w := range got.Workloads {
		isRegime := func(key string, _ []any) bool { return key == "regime" } // which no factor above names
		if d := cmp.Diff(study.Levels{}, w.Levels, cmpopts.EquateEmpty(), cmpopts.IgnoreMapEntries(isRegime)); d != "" {
			t.Errorf("%s keeps levels of its own: %s", w.Name, d)
		}
	}
	if n := len(got.Combinations(study.Workload{})); n != 2*2*3 {
		t.Errorf("no policy, 10 rules and 1000 rules at two MTUs and two delays are 12 combinations, not %d", n)
	}
	again(t, got)
}

// A regime and cpu say the same: the one that the flag gives takes the place of both.
func TestOverrideRegime(t *testing.T) {
	one := result.Params{CPU: "same"}
	waking, paced, free := result.Params{CPU: "two"}, result.Params{CPU: "two", RequestRate: 1000}, result.Params{CPU: "any"}
	for _, c := range []struct {
		factors []string
		want    []result.Params
	}{
		{[]string{"regime=saturated,waking"}, []result.Params{one, waking}},
		{[]string{"regime=saturated,waking,paced", "request_rate=1000"}, []result.Params{one, waking, paced}},
		{[]string{"cpu=any"}, []result.Params{free}},
	} {
		s := latency(t)
		got, err := s.Override(study.Overrides{Factors: c.factors}, known())
		if err != nil {
			t.Errorf("%q: %v", c.factors, err)
			continue
		}
		if d := cmp.Diff(c.want, got.Combinations(study.Workload{})); d != "" {
			t.Errorf("%q: %s", c.factors, d)
		}
		for _, w := range got.Workloads {
			if w.Levels["regime"] != nil || w.Levels["cpu"] != nil {
				t.Errorf("%q: %s keeps a regime of its own: %v", c.factors, w.Name, w.Levels)
			}
		}
		again(t, got)
	}
}

func TestOverrideRefusesFactors(t *testing.T) {
	for _, c := range []struct {
		factors []string
		want    string
	}{
		{[]string{"policy"}, `--factor: "policy" gives no levels; write --factor KEY=LEVEL,LEVEL, for example policy=none,nftables`},
		{[]string{"polcy=none"}, `--factor: unknown factor "polcy"; did you mean "policy"?`},
		{[]string{"policy=none", "policy=ebpf"}, `--factor: policy is there twice; give all its levels at once: --factor policy=A,B`},
		{[]string{"policy=none,iptable"}, `--factor policy: unknown policy "iptable"; did you mean "iptables"?`},
		{[]string{"policy=none,none"}, `--factor policy: policy "none" is there twice; leave one out`},
		{[]string{"link.delay=10"}, `--factor link.delay: link.delay: "10" has no unit; write 10s or 10ms`},
		{[]string{"link.loss="}, `--factor link.loss: link.loss: "" is not a fraction; write 2% or 0.02`},
		{[]string{"regime=paced"}, "--factor regime: regime paced has no rate; say how many requests a second: request_rate: 1000"},
		{[]string{"policy.rules=7"}, "--factor policy.rules: policy.rules changes nothing: there is no policy that it could be of; say whose rules: policy: [none, nftables]"},
		{[]string{"mtu=1500,x"}, `--factor mtu: mtu: "x" is not a size`},
		{[]string{"mtu=20"}, "--factor mtu: mtu 20 is outside 576 to 65535"},
		{[]string{"link.loss=60%"}, "--factor link.loss: link.loss 0.6 is outside 0 to 0.5"},
	} {
		_, err := latency(t).Override(study.Overrides{Factors: c.factors}, known())
		var all study.Errors
		if !errors.As(err, &all) || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%q: got\n%v\nwant\n%s", c.factors, err, c.want)
		}
	}
}
