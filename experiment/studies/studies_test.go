package studies_test

import (
	"testing"

	"netdelta/experiment/studies"
	"netdelta/experiment/study"
	"netdelta/network"
	"netdelta/workload/catalogue"
)

// TestBuiltinsAgainstTheCatalogues: every network and workload that a built-in study names is there, with parameters that
// the workload accepts.
func TestBuiltinsAgainstTheCatalogues(t *testing.T) {
	known := study.Known{Testbeds: []string{"lab"}}
	for _, n := range network.Catalogue() {
		known.Networks = append(known.Networks, n.Name)
	}
	for _, w := range catalogue.Workloads() {
		known.Workloads = append(known.Workloads, study.KnownWorkload{Name: w.Name, Defaults: w.Defaults, Check: w.Check})
	}
	for _, f := range studies.All() {
		if _, err := study.Parse(f.Path(), f.Data, known); err != nil {
			t.Errorf("%s:\n%v", f.Name, err)
		}
	}
}
