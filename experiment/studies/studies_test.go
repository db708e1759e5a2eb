package studies_test

import (
	"slices"
	"testing"

	"netdelta/experiment/studies"
	"netdelta/experiment/study"
	"netdelta/network"
	"netdelta/workload/catalogue"
)

// TestBuiltinsAgainstTheCatalogues: every network and workload that a built-in study names is there, with parameters that
// the workload accepts.
func TestBuiltinsAgainstTheCatalogues(t *testing.T) {
	known := study.Known{Testbeds: []string{"lab", "kubernetes"}, On: map[string]study.KnownTestbed{
		"kubernetes": {Changes: true, Names: []string{"host", "pod", "clusterip", "nodeport", "headless"}},
	}}
	for _, n := range network.Catalogue() {
		known.Networks = append(known.Networks, n.Name)
	}
	for _, w := range catalogue.Workloads() {
		known.Workloads = append(known.Workloads, study.KnownWorkload{Name: w.Name, Defaults: w.Defaults, Parameters: w.Parameters, Check: w.Check})
	}
	for _, f := range studies.All() {
		if _, err := study.Parse(f.Path(), f.Data, known); err != nil {
			t.Errorf("%s:\n%v", f.Name, err)
		}
	}
}

// TestLatencyHasEveryNetwork: a network that is added to the catalogue is added to the default study as well, in its place.
func TestLatencyHasEveryNetwork(t *testing.T) {
	var networks []string
	for _, n := range network.Catalogue() {
		networks = append(networks, n.Name)
	}
	f, _ := studies.Find(studies.Default)
	s, err := study.Parse(f.Path(), f.Data, study.Known{
		Testbeds: []string{"lab"}, Networks: networks, Workloads: []study.KnownWorkload{{Name: "tcp-rr"}, {Name: "udp-rr"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(s.Networks, networks) {
		t.Errorf("the study has\n%v, the catalogue\n%v", s.Networks, networks)
	}
}
