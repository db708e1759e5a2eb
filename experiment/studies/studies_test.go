package studies_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"go.yaml.in/yaml/v4"

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

// TestClaimsCiteTheirSource: who has published a finding can be looked up: a talk is cited by its speakers, title, year and the place in it, and has
// one name in all studies.
func TestClaimsCiteTheirSource(t *testing.T) {
	files := map[string][]byte{}
	for _, f := range studies.All() {
		files[f.Path()] = f.Data
	}
	kept, err := filepath.Glob("../../docs/results/*.yaml")
	if err != nil || len(kept) == 0 {
		t.Fatalf("studies of kept results: %v, %v", kept, err)
	}
	for _, name := range kept {
		if files[name], err = os.ReadFile(name); err != nil {
			t.Fatal(err)
		}
	}
	cited := regexp.MustCompile(`^([A-Z].+), "(.+)", (20\d\d), (at \d+:\d\d|slides? (\d+( and \d+)?|".+"))$`)
	speakers := map[string]string{} // by title
	for name, data := range files {
		var of struct{ Claims []study.Claim }
		if err := yaml.Unmarshal(data, &of); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, c := range of.Claims {
			parts := cited.FindStringSubmatch(c.Source)
			switch {
			case c.Published == "" && parts == nil:
			case parts == nil:
				t.Errorf("%s: claim %s was published, and its source is %q", name, c.ID, c.Source)
			case speakers[parts[2]] == "":
				speakers[parts[2]] = parts[1] + parts[3]
			case speakers[parts[2]] != parts[1]+parts[3]:
				t.Errorf("%s: claim %s has %q by %s, and another claim by %s", name, c.ID, parts[2], parts[1]+parts[3], speakers[parts[2]])
			}
		}
	}
	if len(speakers) != 4 {
		t.Errorf("the studies are about four talks, and their claims cite %d: %v", len(speakers), speakers)
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
