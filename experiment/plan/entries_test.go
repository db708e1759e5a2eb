package plan_test

import (
	"slices"
	"testing"

	"netdelta/experiment/plan"
	"netdelta/experiment/study"
)

// A workload that stands in a study several times is measured at the levels of each entry, and at what two of them share once.
func TestExpandEntriesOfOneWorkload(t *testing.T) {
	const text = `study: s
baseline: host
networks: [host, bridge]
placement: [cross-node]
workloads:
  - tcp-stream: {mtu: [1500, 9000]}
  - tcp-stream: {mtu: 1500, from: [pod, node]}
`
	known := study.Known{Testbeds: []string{"lab"}, Networks: []string{"host", "bridge"}, Workloads: []study.KnownWorkload{{Name: "tcp-stream"}}}
	s, err := study.Parse("s.yaml", []byte(text), known)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, c := range plan.Expand(s) {
		if c.Network == "bridge" {
			ids = append(ids, c.ID)
		}
	}
	want := []string{"bridge/cross-node/tcp-stream/mtu=1500", "bridge/cross-node/tcp-stream/mtu=9000", "bridge/cross-node/tcp-stream/mtu=1500/from=node"}
	if !slices.Equal(ids, want) {
		t.Errorf("expands to %q\nwant %q", ids, want)
	}
	// A flag that takes away what they differ in makes them one.
	n, err := s.Override(study.Overrides{Factors: []string{"from=pod", "mtu=1500"}}, known)
	if err != nil {
		t.Fatal(err)
	}
	if len(n.Workloads) != 1 {
		t.Errorf("%d entries are left: %+v", len(n.Workloads), n.Workloads)
	}
	if n, err = s.Override(study.Overrides{Workloads: []string{"tcp-stream"}}, known); err != nil || len(n.Workloads) != 2 {
		t.Errorf("the workload by its name has %d entries: %v", len(n.Workloads), err)
	}
}
