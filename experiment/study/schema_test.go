package study

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v4"

	"netdelta/experiment/studies"
	"netdelta/testbed"
	"netdelta/workload"
	"netdelta/workload/catalogue"
)

const schemaFile = "../../schema/study.schema.json"

func loadSchema(t *testing.T) (*jsonschema.Schema, map[string]any) {
	t.Helper()
	data, err := os.ReadFile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("study.schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("study.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s, doc.(map[string]any)
}

// asJSON turns YAML into what a JSON Schema is held against.
func asJSON(t *testing.T, data []byte) any {
	t.Helper()
	var v any
	if err := yaml.Load(data, &v); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// everything uses each key and each way of writing a value.
const everything = `study: everything
question: why?
testbed: {kind: lab, nodes: 2, pods: 2, link: {mtu: 9000, rate: 1Gbit/s}}
baseline: host
networks: [host, bridge]
placement: cross-node
workloads:
  - tcp-rr: {message: [300, 64KiB], connections: 1, rate: 1Mbit/s, request_rate: [10, 0.5], cpu: same}
  - udp-rr: {congestion_control: [cubic, bbr], nagle: [true, false], busy_poll: 50us}
  - tcp-crr:
  - tcp-stream: {rate: [1Mbit/s, search]}
factors:
  mtu: [1500, 9000]
  family: [ipv4, ipv6]
  link.rate: 1Gbit/s
  link.delay: [0s, 500us]
  link.loss: [0, 1%, 0.02]
  link.count: 2
  link.nodes: node0:2x25Gbit/s
  bond.mode: 802.3ad
  bond.xmit_hash_policy: layer3+4
  offload.tso: off
  offload.gso: off
  offload.gro: on
  offload.lro: off
  rps: on
  bridge_netfilter: on
  policy: [none, nftables]
  policy.rules: [10, 1000]
  service: pod
  from: [pod, node]
  encryption: none
  qos: guaranteed
design: {burst: 300ms, builds: 12, rounds: 20, blocks: 6, confidence: 95%, margin: 0.02, time_budget: 1m30s, seed: 7}
claims:
  - {id: a, says: b, source: c, published: d, expect: p50 of bridge above host}
`

func everythingKnown() Known {
	return Known{
		Testbeds: []string{"lab", "kubernetes"}, On: map[string]KnownTestbed{
			"kubernetes": {Changes: true, Names: []string{"host", "pod", "clusterip", "nodeport", "headless"}},
		}, Networks: []string{
			"host", "bridge", "bridge-nat", "macvlan", "ipvlan-l2", "ipvlan-l3", "routed", "vxlan", "vxlan-routed", "ebpf-routed", "ebpf-vxlan", "sockmap",
			"xdp", "udp-tun", "sriov", "ipip", "gre", "geneve", "netkit", "netkit-l2", "ovs", "wireguard", "ipsec",
		},
		Workloads: []KnownWorkload{
			{Name: "tcp-rr"}, {Name: "udp-rr"}, {Name: "tcp-crr"}, {Name: "tcp-stream"}, {Name: "udp-stream", Parameters: workload.Parameters(catalogue.Workloads())}, {Name: "http"}, {Name: "block"}, {Name: "oltp"},
		},
	}
}

func TestSchemaAcceptsWhatIsParsed(t *testing.T) {
	schema, _ := loadSchema(t)
	inputs := map[string][]byte{"everything": []byte(everything)}
	for _, f := range studies.All() {
		inputs[f.Name] = f.Data
	}
	for name, data := range inputs {
		s, err := Parse(name, data, everythingKnown())
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(asJSON(t, data)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		written, err := s.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(asJSON(t, written)); err != nil {
			t.Errorf("%s, written back: %v", name, err)
		}
	}
}

func TestSchemaRefuses(t *testing.T) {
	schema, _ := loadSchema(t)
	for _, change := range []struct{ from, to string }{
		{"study: everything", "study: ../x"},
		{"question: why?", "qestion: why?"},
		{"baseline: host\n", ""},
		{"networks: [host, bridge]", "networks: []"},
		{"networks: [host, bridge]", "networks: [host, host]"},
		{"placement: cross-node", "placement: somewhere"},
		{"message: [300, 64KiB]", "message: -5"},
		{"message: [300, 64KiB]", "mesage: 5"},
		{"cpu: same", "cpu: three"},
		{"rate: [1Mbit/s, search]", "rate: [1Mbit/s, find]"},
		{"rate: 1Gbit/s", "rate: search"},
		{"family: [ipv4, ipv6]", "family: [ipv4, ipv5]"},
		{"family: [ipv4, ipv6]", "family: [ipv6, ipv6]"},
		{"link.delay: [0s, 500us]", "link.delay: 10"},
		{"link.loss: [0, 1%, 0.02]", "link.loss: -1"},
		{"link.count: 2", "link.count: 0"},
		{"link.count: 2", "link.count: 17"},
		{"bond.mode: 802.3ad", "bond.mode: 802.3"},
		{"layer3+4", "layer4"},
		{"offload.gro: on", "offload.gro: true"},
		{"rps: on", "rps: [on, on]"},
		{"policy: [none, nftables]", "policy: [none, ipfw]"},
		{"policy.rules: [10, 1000]", "policy.rules: 0"},
		{"policy.rules: [10, 1000]", "policy.rules: 20000"},
		{"service: pod", "service: nodeport"},
		{"from: [pod, node]", "from: host"},
		{"encryption: none", "encryption: tls"},
		{"qos: guaranteed", "qos: burstable"},
		{"qos: guaranteed", "qos.class: guaranteed"},
		{"burst: 300ms", "burst: 5"},
		{"margin: 0.02", "margin: 2"},
		{"seed: 7", "seed: -7"},
		{"says: b, ", ""},
		{"pods: 2", "pods: two"},
	} {
		changed := strings.Replace(everything, change.from, change.to, 1)
		if changed == everything {
			t.Fatalf("%q is not in the study", change.from)
		}
		if schema.Validate(asJSON(t, []byte(changed))) == nil {
			t.Errorf("%s: the schema accepts it", change.to)
		}
		if _, err := Parse("x", []byte(changed), everythingKnown()); err == nil {
			t.Errorf("%s: the parser accepts it", change.to)
		}
	}
}

// TestSchemaHasTheKeysOfTheParser compares, mapping by mapping, the keys that the parser reads with those in the schema.
func TestSchemaHasTheKeysOfTheParser(t *testing.T) {
	_, doc := loadSchema(t)
	properties := func(path ...string) []string {
		at := any(doc)
		for _, p := range path {
			m, ok := at.(map[string]any)
			if !ok || m[p] == nil {
				t.Fatalf("the schema has no %s", strings.Join(path, "."))
			}
			at = m[p]
		}
		var names []string
		for name := range at.(map[string]any) {
			names = append(names, name)
		}
		slices.Sort(names)
		return names
	}
	r := &reader{study: Study{Parameters: everythingKnown().parameters()}}
	for _, c := range []struct {
		what   string
		parser keys
		schema []string
	}{
		{"study", readersOf(studyFields(r, &r.study)), properties("properties")},
		{"testbed", readersOf(testbedFields(r, &r.study.Testbed)), properties("properties", "testbed", "properties")},
		{"link", readersOf(linkFields(r, &r.study.Testbed.Link)), properties("properties", "testbed", "properties", "link", "properties")},
		{"design", readersOf(designFields(r, &r.study.Design)), properties("properties", "design", "properties")},
		{"change", readersOf(changeFields(r, &testbed.Change{})), properties("$defs", "change", "properties")},
		{"claim", readersOf(claimFields(r, &Claim{})), properties("properties", "claims", "items", "properties")},
		{"levels", r.levelKeys(&Levels{}), properties("$defs", "levels", "properties")},
	} {
		if d := cmp.Diff(c.parser.names(), c.schema); d != "" {
			t.Errorf("keys of %s, parser and schema: %s", c.what, d)
		}
	}
}
