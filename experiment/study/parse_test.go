package study_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"netdelta/experiment/studies"
	"netdelta/experiment/study"
	"netdelta/internal/golden"
	"netdelta/result"
	"netdelta/unit"
	"netdelta/workload"
	"netdelta/workload/catalogue"
)

// known is a catalogue of a size that messages can be written against.
func known() study.Known {
	requestResponse := func(p result.Params) error {
		if p.Message < 1 || p.Message > unit.MiB {
			return fmt.Errorf("message %v is outside 1B to 1MiB", p.Message)
		}
		if p.Rate != 0 || p.Search {
			return errors.New("rate is not a parameter of it")
		}
		if p.Connections > 8 && p.Message > 64*unit.KiB {
			return errors.New("messages over 64KiB need at most 8 connections")
		}
		return nil
	}
	defaults := result.Params{Message: 64, Connections: 1, CPU: "same"}
	return study.Known{
		Testbeds: []string{"lab"}, On: map[string]study.KnownTestbed{
			"ssh": {Cards: true, Added: true}, "what-if": {Cards: true, Added: true}, "kubernetes": {Changes: true, Added: true},
		},
		Networks: []string{"host", "bridge", "bridge-nat", "macvlan", "ipvlan-l2", "ipvlan-l3", "routed", "vxlan", "vxlan-routed"},
		Workloads: []study.KnownWorkload{
			{Name: "tcp-rr", Defaults: defaults, Check: requestResponse},
			{Name: "udp-rr", Defaults: defaults, Check: requestResponse},
			{Name: "tcp-crr", Defaults: defaults, Check: requestResponse},
			{Name: "tcp-stream"},
			{Name: "udp-stream", Parameters: workload.Parameters(catalogue.Workloads())},
		},
		CheckMTU: func(network string, family result.Family, mtu unit.Bytes) error {
			overhead := map[result.Family]unit.Bytes{result.IPv4: 50, result.IPv6: 70}[family]
			if strings.HasPrefix(network, "vxlan") && mtu < 1280+overhead {
				return fmt.Errorf("network %s over mtu %d leaves pods less than 1280 bytes", network, mtu)
			}
			return nil
		},
	}
}

// whole is known with every network and workload that a built-in study names.
func whole() study.Known {
	k := known()
	k.Networks = append(k.Networks,
		"ebpf-routed", "ebpf-vxlan", "sockmap", "xdp", "udp-tun", "sriov", "ipip", "gre", "geneve", "netkit", "netkit-l2", "ovs", "wireguard", "ipsec")
	k.Workloads = append(k.Workloads, study.KnownWorkload{Name: "http"}, study.KnownWorkload{Name: "block"}, study.KnownWorkload{Name: "oltp"})
	k.Testbeds = append(k.Testbeds, "kubernetes")
	k.On["kubernetes"] = study.KnownTestbed{Changes: true, Names: []string{"host", "pod", "clusterip", "nodeport", "headless"}, Read: multus}
	return k
}

// multus reads networks of which one is there and another is described wrongly.
func multus(name string) (is bool, err error) {
	rest, is := strings.CutPrefix(name, "multus:")
	if is && rest != "default/fast" {
		err = errors.New("there is no such network")
	}
	return is, err
}

// TestBadInput holds each file in testdata/bad against its messages: testdata/bad/NAME.yaml, and NAME.txt as golden.
func TestBadInput(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*.yaml")
	if err != nil || len(files) < 20 {
		t.Fatalf("want at least 20 files of bad input, have %d (%v)", len(files), err)
	}
	for _, file := range files {
		name := filepath.Base(file)
		t.Run(strings.TrimSuffix(name, ".yaml"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			golden.Check(t, strings.TrimSuffix(file, ".yaml")+".txt", parseBad(t, name, data))
		})
	}
}

// parseBad returns the messages for a file that must be refused.
func parseBad(t *testing.T, name string, data []byte) string {
	t.Helper()
	k := known()
	if strings.HasPrefix(name, "target") || strings.HasPrefix(name, "storage") {
		k = whole()
	}
	if strings.HasPrefix(name, "changes") {
		k.Testbeds, k.Networks = append(k.Testbeds, "kubernetes"), append(k.Networks, "pod")
	}
	s, err := study.Parse(name, data, k)
	if err == nil || s != nil {
		t.Fatalf("want no study and an error, have %+v and %v", s, err)
	}
	var all study.Errors
	if !errors.As(err, &all) {
		t.Fatalf("want study.Errors, have %T", err)
	}
	for _, e := range all {
		if e.Position.File != name {
			t.Errorf("error %q does not name the file", e)
		}
	}
	return err.Error() + "\n"
}

// TestBadBytes has the input that can't stand in a text file.
func TestBadBytes(t *testing.T) {
	deep := strings.Repeat("[", 100) + strings.Repeat("]", 100)
	var bomb strings.Builder
	bomb.WriteString("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n")
	for i := range 9 {
		fmt.Fprintf(&bomb, "a%d: &a%d [%s]\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i), 10), ", "))
	}
	for name, c := range map[string]struct{ data, want string }{
		"empty":     {"", "f: the file is empty"},
		"blank":     {"\n\n", "f: the file is empty"},
		"comment":   {"# nothing\n", "f: the file is empty"},
		"null":      {"---\n", "f: the file is empty"},
		"latin1":    {"study: x\nquestion: caf\xe9\n", "f:2:14: byte 0xe9 is not UTF-8; save the file as UTF-8"},
		"utf16":     {"\xff\xfes\x00", "f:1:1: byte 0xff is not UTF-8"},
		"control":   {"study: a\x1b[31mb\n", "f:1:9: control character U+001B; a study file is plain text"},
		"nul":       {"study: a\x00b\n", "f:1:9: control character U+0000"},
		"escape":    {"study: \"a\\x1b[31mb\"\n", `study name "a\x1b[31mb": it has a control character (U+001B)`},
		"invisible": {"study: \"a\\u202Eb\"\n", `study name "a\u202eb": it has an invisible character (U+202E)`},
		"huge":      {strings.Repeat("#", 1<<20+1), "f: the file has 1048577 bytes, and a study may have 1048576"},
		"deep":      {deep, "f:1:17: values are nested deeper than 16 levels"},
		"bomb":      {bomb.String(), "the anchors of this file expand without end; write the values out"},
		"cycle":     {"a: &x [*x]\n", "f:1:8: the anchors of this file expand without end"},
		"scalar":    {"latency\n", `f:1:1: the study must be a mapping (key: value), not the text "latency"; its keys are baseline, changes, claims`},
		"list":      {"- a\n", "f:1:1: the study must be a mapping (key: value), not a list"},
		"two":       {"study: a\n---\nstudy: b\n", "there is a second document in the file; put each study in a file of its own"},
		"long":      {"study: " + strings.Repeat("a", 65) + "\n", "it has 65 characters"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := parseBad(t, "f", []byte(c.data)); !strings.Contains(got, c.want) {
				t.Errorf("got\n%swant\n%s", got, c.want)
			}
		})
	}
}

func TestHostileFileName(t *testing.T) {
	_, err := study.Parse("a\x1b[2Jb\n.yaml", nil, known())
	if err == nil || strings.ContainsAny(err.Error(), "\x1b\n") {
		t.Errorf("the name of the file reaches the terminal: %q", err)
	}
}

const small = `study: small
baseline: host
networks: [host, bridge]
workloads: [tcp-rr]
`

func TestDefaults(t *testing.T) {
	s, err := study.Parse("small.yaml", []byte(small), known())
	if err != nil {
		t.Fatal(err)
	}
	want := &study.Study{
		Name:      "small",
		Testbed:   study.Testbed{Kind: "lab", Nodes: 2, Pods: 2, Link: study.Link{MTU: 1500}},
		Baseline:  "host",
		Networks:  []string{"host", "bridge"},
		Placement: []result.Placement{result.SameNode, result.CrossNode},
		Workloads: []study.Workload{{Name: "tcp-rr"}},
		Design: study.Design{
			Burst: study.DefaultBurst, Builds: 12, Confidence: 0.95, Margin: 0.02, TimeBudget: study.DefaultTimeBudget,
		},
		Parameters: s.Parameters,
	}
	if d := cmp.Diff(want, s); d != "" {
		t.Error(d)
	}
}

func TestPlacementFollowsTestbed(t *testing.T) {
	s, err := study.Parse("one.yaml", []byte(small+"testbed: {nodes: 1}\n"), known())
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]result.Placement{result.SameNode}, s.Placement); d != "" {
		t.Error(d)
	}
}

// everything has each key once.
const everything = small + `question: "yes: 5 # <b>"
testbed: {kind: lab, nodes: 3, pods: 4, link: {mtu: 9000, rate: 2.5Gbit/s}}
placement: cross-node
factors: {mtu: [1500, 9000], family: [ipv4, ipv6], cpu: [same, two], congestion_control: [cubic, bbr], nagle: [true, false], busy_poll: [0s, 50us], request_rate: [0.5, 1e6], connections: 3}
design: {burst: 20ms, builds: 7, rounds: 30, blocks: 9, confidence: 99%, margin: 0.5%, time_budget: 15m, seed: 18446744073709551615}
claims:
  - {id: a, says: "5", source: "2016-01-01", published: "~", expect: p50 of bridge above host}
`

// everywhere has each condition.
const everywhere = small + `factors:
  link.rate: 2.5Gbit/s
  link.delay: [0s, 50us]
  link.loss: [0, 0.1%, 0.02]
  link.count: 4
  link.nodes: [none, node0:2x25Gbit/s@5us+node1:10Gbit/s]
  bond.mode: [802.3ad, balance-alb]
  bond.xmit_hash_policy: vlan+srcmac
  offload.tso: off
  offload.gso: on
  offload.gro: off
  offload.lro: "off"
  rps: on
  policy: [none, ebpf]
  policy.rules: 10000
  service: [pod, ipvs]
  service.count: 100
  from: [pod, node]
  encryption: [none, ipsec]
  qos: [guaranteed, best-effort]
`

func TestConditionsRoundTrip(t *testing.T) {
	s, err := study.Parse("everywhere.yaml", []byte(everywhere), known())
	if err != nil {
		t.Fatal(err)
	}
	again(t, s)
	c := s.Factors
	if c["link.loss"][1] != 0.001 || c["link.delay"][1] != 50*time.Microsecond || c["bond.mode"][0] != "802.3ad" || c["offload.lro"][0] != "off" || c["rps"][0] != "on" {
		t.Errorf("read %+v", c)
	}
	for _, p := range s.Combinations(study.Workload{}) {
		if p.Conditions != p.Conditions.Plain() {
			t.Fatalf("%+v is not plain", p.Conditions)
		}
	}
}

func TestRoundTrip(t *testing.T) {
	s, err := study.Parse("everything.yaml", []byte(everything), known())
	if err != nil {
		t.Fatal(err)
	}
	if s.Design.Confidence != 0.99 || s.Design.Margin != 0.005 || s.Design.Seed != 1<<64-1 || s.Testbed.Link.Rate != 2.5*unit.Gbit {
		t.Errorf("read %+v and %+v", s.Design, s.Testbed)
	}
	again(t, s)
}

func TestSearchIsALevelOfRate(t *testing.T) {
	file := strings.Replace(small, "tcp-rr", "udp-stream: {rate: [10Mbit/s, search]}", 1) + "design: {burst: 250ms}\n"
	s, err := study.Parse("search.yaml", []byte(file), known())
	if err != nil {
		t.Fatal(err)
	}
	again(t, s)
	want := []result.Params{{Rate: 10 * unit.Mbit}, {Search: true}}
	if d := cmp.Diff(want, s.Combinations(s.Workloads[0])); d != "" {
		t.Error(d)
	}
	defaults := result.Params{Rate: unit.Gbit, Message: 64}
	if p := study.WithDefaults(want[1], defaults); p != (result.Params{Search: true, Message: 64}) {
		t.Errorf("a search with defaults is %+v", p)
	}
}

// again writes a study and reads it back.
func again(t *testing.T, s *study.Study, catalogue ...study.Known) {
	t.Helper()
	data, err := s.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	back, err := study.Parse("again.yaml", data, append(catalogue, known())[0])
	if err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	if d := cmp.Diff(s, back); d != "" {
		t.Errorf("%s\n%s", d, data)
	}
}

func TestBuiltins(t *testing.T) {
	for _, f := range studies.All() {
		s, err := study.Parse(f.Path(), f.Data, whole())
		if err != nil {
			t.Errorf("%s:\n%v", f.Name, err)
			continue
		}
		if s.Name != f.Name || s.Question == "" || s.Baseline != "host" {
			t.Errorf("%s is named %q, asks %q against %q", f.Name, s.Name, s.Question, s.Baseline)
		}
		again(t, s, whole())
	}
	if f, ok := studies.Find(studies.Default); !ok || f.Name != studies.Default {
		t.Errorf("the default study is %q", f.Name)
	}
	if _, ok := studies.Find("latencies"); ok {
		t.Error("found a study that is not there")
	}
}

func TestLatencyIsThePublishedOne(t *testing.T) {
	f, _ := studies.Find("latency")
	s, err := study.Parse(f.Path(), f.Data, whole())
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Claims) != 10 || len(s.Networks) != len(whole().Networks) || len(s.Placement) != 2 {
		t.Errorf("have %d claims, %d networks, %d placements", len(s.Claims), len(s.Networks), len(s.Placement))
	}
	want := map[string][]any{
		"tcp-rr": {unit.Bytes(300), unit.Bytes(500), unit.Bytes(1024), unit.Bytes(2048), unit.Bytes(65536)},
		"udp-rr": {unit.Bytes(300), unit.Bytes(500), unit.Bytes(1024), unit.Bytes(2048)},
	}
	for _, w := range s.Workloads {
		if w.Levels["regime"] != nil {
			want[w.Name] = []any{unit.Bytes(300)} // the regime waking, which the talk did not measure
		}
		if d := cmp.Diff(want[w.Name], w.Levels["message"]); d != "" {
			t.Errorf("%s: %s", w.Name, d)
		}
	}
	for _, c := range s.Claims {
		if c.Source == "" || c.Published == "" {
			t.Errorf("claim %s has no source or figure", c.ID)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range studies.All() {
		f.Add(s.Data)
	}
	f.Add([]byte(everything))
	f.Add([]byte(everywhere))
	files, _ := filepath.Glob("testdata/bad/*.yaml")
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := study.Parse("fuzz.yaml", data, known())
		if err != nil {
			if s != nil {
				t.Fatal("a study together with an error")
			}
			for line := range strings.SplitSeq(err.Error(), "\n") {
				if !strings.HasPrefix(line, "fuzz.yaml:") {
					t.Fatalf("an error without its place: %q", line)
				}
			}
			return
		}
		again(t, s)
	})
}
