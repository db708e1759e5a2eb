package study

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"netdelta/testbed"
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
	k.Networks = append(k.Networks, "pod", "clusterip")
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
			if s.State(network) != want {
				t.Errorf("%s is in state %q, want %q", network, s.State(network), want)
			}
		}
	}
	if s := (&Study{Baseline: "pod"}); s.AcrossStates() || s.State("pod") != "" {
		t.Error("a study that changes nothing has states")
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
