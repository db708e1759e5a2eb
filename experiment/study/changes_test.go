package study

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"netdelta/result"
	"netdelta/testbed"
	"netdelta/unit"
)

const changing1 = `study: cni
testbed: {kind: kubernetes}
baseline: host
networks:
  - host
  - pod
  - name: flannel-vxlan
    expect: vxlan
    apply: scripts/switch.sh vxlan
    ready: ["kubectl -n 'kube flannel' rollout status ds/kube-flannel-ds", [sh, -c, "a | b"]]
    restore: [{manifest: old.yaml}, {delete: new.yaml}]
    settle: kubectl rollout restart deploy/shop
    within: 30s
  - {name: policies, uses: clusterip, apply: {manifest: p.yaml}, restore: {delete: p.yaml}, pods: kept}
workloads: [tcp-rr]
claims:
  - {id: a, says: b, expect: p50 of flannel-vxlan above pod}
`

func changingKnown() Known {
	k := everythingKnown()
	k.Testbeds = append(k.Testbeds, "kubernetes")
	k.Networks, k.On = append(k.Networks, "pod", "clusterip"), map[string]KnownTestbed{"kubernetes": {Changes: true, Added: true}}
	return k
}

func TestChanges(t *testing.T) {
	s, err := Parse("cni.yaml", []byte(changing1), changingKnown())
	if err != nil {
		t.Fatal(err)
	}
	want := []testbed.Change{
		{
			Network: "flannel-vxlan", Uses: "pod", Expect: testbed.InVXLAN, Within: 30 * time.Second,
			Apply:   []testbed.Action{{Command: []string{"scripts/switch.sh", "vxlan"}}},
			Ready:   []testbed.Action{{Command: []string{"kubectl", "-n", "kube flannel", "rollout", "status", "ds/kube-flannel-ds"}}, {Command: []string{"sh", "-c", "a | b"}}},
			Restore: []testbed.Action{{Manifest: "old.yaml"}, {Delete: "new.yaml"}},
			Settle:  []testbed.Action{{Command: []string{"kubectl", "rollout", "restart", "deploy/shop"}}},
		},
		{
			Network: "policies", Uses: "clusterip", Within: DefaultWithin, Kept: true,
			Apply: []testbed.Action{{Manifest: "p.yaml"}}, Restore: []testbed.Action{{Delete: "p.yaml"}},
		},
	}
	if d := cmp.Diff(want, s.Changes); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"host", "pod", "flannel-vxlan", "policies"}, s.Networks); d != "" {
		t.Error(d)
	}
	written, err := s.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	again, err := Parse("again.yaml", written, changingKnown())
	if err != nil {
		t.Fatalf("%v\n%s", err, written)
	}
	if d := cmp.Diff(s, again); d != "" {
		t.Errorf("%s\n%s", d, written)
	}
	schema, _ := loadSchema(t)
	for _, data := range [][]byte{[]byte(changing1), written} {
		if err := schema.Validate(asJSON(t, data)); err != nil {
			t.Errorf("%v\n%s", err, data)
		}
	}
}

func TestChangesUnderFlags(t *testing.T) {
	s, err := Parse("cni.yaml", []byte(changing1), changingKnown())
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Override(Overrides{Networks: []string{"policies"}}, changingKnown())
	if err == nil || !strings.Contains(err.Error(), "flannel-vxlan") {
		t.Errorf("a claim about a network that is left out: %v", err)
	}
	s.Claims = nil
	few, err := s.Override(Overrides{Networks: []string{"policies"}}, changingKnown())
	if err != nil {
		t.Fatal(err)
	}
	if len(few.Changes) != 1 || len(s.Changes) != 2 || !slices.Equal(few.Networks, []string{"host", "policies"}) {
		t.Errorf("networks %v and changes %v", few.Networks, few.Changes)
	}
	for flag, o := range map[string]Overrides{
		"--networks: unknown network \"flanel-vxlan\"; did you mean \"flannel-vxlan\"?": {Networks: []string{"flanel-vxlan", "flannel-vxlan"}},
		"--baseline: unknown network \"policie\"; did you mean \"policies\"?":           {Baseline: "policie"},
	} {
		if _, err := s.Override(o, changingKnown()); err == nil || !strings.Contains(err.Error(), flag) {
			t.Errorf("want %s, have %v", flag, err)
		}
	}
}

// Which state of the cluster each network is measured in, and when the baseline is one of them.
func TestStatesOfAStudy(t *testing.T) {
	changes := []testbed.Change{{Network: "a", Kept: true}, {Network: "b"}, {Network: "c", Kept: true}}
	for baseline, across := range map[string]bool{HostNetwork: false, "pod": true, "b": true} {
		s := &Study{Baseline: baseline, Networks: []string{"host", "pod", "a", "b", "c"}, Changes: changes}
		if s.AcrossStates() != across {
			t.Errorf("baseline %s: across states %v", baseline, s.AcrossStates())
		}
		for network, want := range map[string]string{"pod": AsFound, "a": "a", "b": "b", "c": "a"} {
			if s.State(network, result.Params{}) != want {
				t.Errorf("%s is in state %q, want %q", network, s.State(network, result.Params{}), want)
			}
		}
	}
	if s := (&Study{Baseline: "pod"}); s.AcrossStates() || s.State("pod", result.Params{}) != "" {
		t.Error("a study that changes nothing has states")
	}
}

const changedLevels = `study: mtu
testbed: {kind: kubernetes}
baseline: pod
networks: [pod, host, {name: routes, apply: a, restore: b, pods: kept}]
workloads: [tcp-rr]
factors: {mtu: [1500, 9000]}
changes:
  - {level: mtu=9000, apply: c, ready: r, restore: d, settle: e, within: 1h}
claims:
  - {id: a, says: b, expect: p50 of pod rises between mtu=1500 and mtu=9000}
`

// Levels of a factor may be changes of the cluster: the states are then the networks' at each of them.
func TestLevelsThatAreChanges(t *testing.T) {
	s, err := Parse("mtu.yaml", []byte(changedLevels), changingKnown())
	if err != nil {
		t.Fatal(err)
	}
	large := result.Params{MTU: 9000}
	for want, got := range map[string]string{
		AsFound: s.State("pod", result.Params{MTU: 1500}), "mtu=9000": s.State("pod", large),
		"routes": s.State("routes", result.Params{MTU: 1500}), "routes, mtu=9000": s.State("routes", large),
	} {
		if got != want {
			t.Errorf("a state is called %q, want %q", got, want)
		}
	}
	all := s.StateChanges()
	command := func(words ...string) (all []testbed.Action) {
		for _, w := range words {
			all = append(all, testbed.Action{Command: []string{w}})
		}
		return all
	}
	both := testbed.Change{
		Network: "routes, mtu=9000", Within: time.Hour, Apply: command("a", "c"), Ready: command("r"), Restore: command("d", "b"), Settle: command("e"),
	}
	if d := cmp.Diff(both, all[len(all)-1]); len(all) != 3 || d != "" {
		t.Errorf("%d changes, the last: %s", len(all), d)
	}
	if asked := s.Asked(result.Params{MTU: 9000, Message: 300}); asked != (result.Params{Message: 300}) {
		t.Errorf("the testbed is asked for %+v", asked)
	}
	written, err := s.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	again, err := Parse("mtu.yaml", written, changingKnown())
	if err != nil {
		t.Fatalf("%v\n%s", err, written)
	}
	if d := cmp.Diff(s.Changes, again.Changes); d != "" {
		t.Error(d)
	}
	few, err := s.Override(Overrides{Networks: []string{"pod"}, MTU: []unit.Bytes{1500, 9000}}, changingKnown())
	if err != nil || len(few.Changes) != 1 {
		t.Errorf("%v, changes %v", err, few.Changes)
	}
}

func TestBadLevelsThatAreChanges(t *testing.T) {
	for was, c := range map[string]struct{ is, want string }{
		"level: mtu=9000":   {"level: mtu=4000", "is not one of the factors' levels"},
		"{level: mtu=9000":  {"{level: message=300", "no level that a cluster could be changed to"},
		"level: mtu=9000,":  {"level: policy=nftables,", "of a policy or a service make a network"},
		"restore: d":        {"ready: d", "is there twice"},
		", restore: d":      {"", "has no \"restore\""},
		"level: mtu=9000, ": {"", "a change has no level"},
		"and mtu=9000}":     {"and mtu=4000}", "mtu=4000 is no level of this study"},
		"between mtu=1500":  {"between policy=nftables", "two levels of one"},
		"baseline: pod":     {"baseline: host", "take a baseline that is one state"},
		"apply: c":          {"apply: c, expect: vxlan", "unknown key \"expect\""},
	} {
		_, err := Parse("mtu.yaml", []byte(strings.Replace(changedLevels, was, c.is, 1)), changingKnown())
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: want %q, have %v", c.is, c.want, err)
		}
	}
}

func TestSplitCommand(t *testing.T) {
	for line, want := range map[string][]string{
		"a":                     {"a"},
		"  a  'b c'\t\"d e\"f ": {"a", "b c", "d ef"},
		"a '' \"\"":             {"a", "", ""},
		"a '$x' \"|\" 'it\"s'":  {"a", "$x", "|", `it"s`},
	} {
		if got, err := splitCommand(line); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v; want %q", line, got, err, want)
		}
	}
	for line, want := range map[string]string{
		"": "no program", " \t": "no program", "'' a": "no program", "a 'b": "has no end", "a | b": "no shell", "a $x": "no shell", `a "$x"`: "no shell", "a > b": "no shell", "a *": "no shell",
	} {
		if got, err := splitCommand(line); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %q, %v; want %s", line, got, err, want)
		}
	}
}

func FuzzSplitCommand(f *testing.F) {
	for _, s := range []string{"a", "a 'b c' \"d\"", "kubectl -n kube-flannel rollout status ds/x", "'", "a\\ b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		words, err := splitCommand(line)
		if err != nil {
			if words != nil {
				t.Fatal("words together with an error")
			}
			return
		}
		if len(words) == 0 || words[0] == "" {
			t.Fatalf("%q: no program", line)
		}
	})
}
