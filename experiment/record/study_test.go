package record_test

import (
	"slices"
	"strings"
	"testing"

	"netdelta/experiment/record"
	"netdelta/experiment/study"
)

const file = `study: nodes
strategy: pairs
options:
  networks: [host, bridge]
  seed: 17856576177916981555
claims:
  - {id: a, says: bridges cost more, source: me, expect: p50 of bridge above host}
`

// A study says the same after it was written and read again.
func TestStudyIsReadBack(t *testing.T) {
	s, err := record.Parse("nodes.yaml", "pairs", []byte(file))
	if err != nil {
		t.Fatal(err)
	}
	s.Set("rounds", false, "3")
	data, err := s.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	if s, err = record.Parse("again.yaml", "pairs", data); err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	for name, want := range map[string][]string{"networks": {"host", "bridge"}, "seed": {"17856576177916981555"}, "rounds": {"3"}} {
		if values, list := s.Values(name); !slices.Equal(values, want) || list != (name == "networks") {
			t.Errorf("%s is %q, a list %v", name, values, list)
		}
	}
	if claims := study.Untested(s.Claims); len(claims) != 1 || claims[0].Source != "me" || claims[0].Verdict != "not-tested" {
		t.Errorf("the claims are %+v", claims)
	}
}

func TestStudyRefused(t *testing.T) {
	for want, change := range map[string][2]string{
		"its strategy is":          {"strategy: pairs", "strategy: fleet"},
		"need a name":              {"study: nodes", "study: ../nodes"},
		"needs id, says":           {"id: a, ", ""},
		"claim a":                  {"p50 of bridge above host", "p50 of"},
		"x.yaml":                   {"claims:", "clams:"},
		"x.yaml: its strategy is ": {"strategy: pairs", ""},
	} {
		_, err := record.Parse("x.yaml", "pairs", []byte(strings.Replace(file, change[0], change[1], 1)))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
}
