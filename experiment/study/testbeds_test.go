package study_test

import (
	"strings"
	"testing"

	"netdelta/experiment/study"
	"netdelta/result"
)

// TestNetworksOfTheTestbed: a study has the networks of its own testbed, and its claims may name the networks of any testbed.
func TestNetworksOfTheTestbed(t *testing.T) {
	parse := func(kind, network, about string) error {
		_, err := study.Parse("s.yaml", []byte("study: s\ntestbed: {kind: "+kind+"}\nbaseline: host\nnetworks: [host, "+network+"]\nworkloads: [tcp-rr]\n"+
			"claims: [{id: a, says: b, expect: p50 of "+about+" above host}]\n"), whole())
		return err
	}
	for _, c := range []struct{ kind, network, about, want string }{
		{"lab", "vxlan", "vxlan", ""},
		{"kubernetes", "clusterip", "clusterip", ""},
		{"kubernetes", "clusterip", "vxlan", ""},
		{"kubernetes", `"multus:default/fast"`, "pod", ""},
		{"kubernetes", `"multus:default/slow"`, "pod", `s.yaml:4:18: network "multus:default/slow": there is no such network`},
		{"kubernetes", "vxlan", "pod", `s.yaml:4:18: unknown network "vxlan"; known are clusterip, headless, host, nodeport, pod`},
		{"kubernetes", "clusterp", "pod", `s.yaml:4:18: unknown network "clusterp"; did you mean "clusterip"?`},
		{"lab", "nodeport", "vxlan", `s.yaml:4:18: unknown network "nodeport"`},
		{"lab", `"multus:default/fast"`, "vxlan", `s.yaml:4:18: unknown network "multus:default/fast"`},
		{"lab", "vxlan", "nodeport", `unknown network "nodeport"`},
	} {
		err := parse(c.kind, c.network, c.about)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s on %s, a claim about %s: %v, want %q", c.network, c.kind, c.about, err, c.want)
		}
	}
}

// TestOverrideOnItsTestbed: flags name networks of the testbed that the study was given.
func TestOverrideOnItsTestbed(t *testing.T) {
	s, err := study.Parse("s.yaml", []byte(small), whole())
	if err != nil {
		t.Fatal(err)
	}
	s.Testbed.Kind = "kubernetes"
	moved, err := s.Override(study.Overrides{Networks: []string{"pod", "clusterip"}}, whole())
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(moved.Networks, " "); got != "host pod clusterip" {
		t.Errorf("networks %s", got)
	}
	if _, err := s.Override(study.Overrides{Networks: []string{"vxlan"}}, whole()); err == nil || !strings.Contains(err.Error(), "--networks") {
		t.Errorf("a network of the lab on a cluster: %v", err)
	}
}

// TestMoveTo: the cards and processors that a study names go with it to servers and nodes of a cluster, and to no other testbed.
func TestMoveTo(t *testing.T) {
	for kind, want := range map[string]string{"what-if": "take:eth2", "lab": ""} {
		s := study.Study{Testbed: study.Testbed{Kind: "ssh", NIC: "take:eth2", Via: "eth2", CPU: &result.Pins{Client: 2}}}
		if s.MoveTo(kind, want != ""); s.Testbed.Kind != kind || s.Testbed.NIC != want || s.Testbed.Via != "" || (s.Testbed.CPU == nil) != (want == "") {
			t.Errorf("moved to %s it is %+v", kind, s.Testbed)
		}
	}
}
