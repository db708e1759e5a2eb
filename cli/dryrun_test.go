package cli

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"netdelta/experiment"
	"netdelta/experiment/plan"
	"netdelta/experiment/studies"
	"netdelta/experiment/study"
	"netdelta/internal/require"
	"netdelta/network"
	"netdelta/report/ui"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/lab"
	"netdelta/workload/catalogue"
)

// A dry run says how often each state of a cluster would be visited, how long that takes, and how precise it can be.
func TestVisitsAreSaidBeforehand(t *testing.T) {
	s := &study.Study{
		Baseline: "pod", Networks: []string{"pod", "host", "routes"}, Placement: []result.Placement{result.CrossNode},
		Workloads: []study.Workload{{Name: "tcp-rr"}}, Changes: []testbed.Change{{Network: "routes"}},
		Design: study.Design{TimeBudget: time.Hour, Builds: 6, Blocks: 6},
	}
	p := experiment.Plan{Cells: plan.Expand(s), Rules: plan.RulesOf(s.Design), Costs: plan.Costs{Build: 30 * time.Second, Burst: 10 * time.Millisecond}}
	said := func() string {
		var out bytes.Buffer
		if err := ui.Print(&out, "a plan", func(text ui.Text) { printVisits(text, s, p) }); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	for _, want := range []string{
		"6 blocks in 9m30s or more", "as found: pod, host; about 35s", "as found again, as A/A control: pod, host;", "routes: routes, host;",
		"±1.3% after 6 visits",
	} {
		if got := said(); !strings.Contains(got, want) {
			t.Errorf("it does not say %q:\n%s", want, got)
		}
	}
	p.Rules.Builds = 2
	if got := said(); !strings.Contains(got, "no interval: it takes 3 visits") {
		t.Errorf("of two visits:\n%s", got)
	}
	s.Changes = nil
	if p.Cells = plan.Expand(s); said() != "" {
		t.Errorf("without states:\n%s", said())
	}
}

// A study that is about what this kernel lacks goes to a guest, and says so; one that a flag has stay, stays.
func TestStudyOfWhatIsLackingGoesToGuest(t *testing.T) {
	require.Namespaces(t)
	driver := lab.NewDriver(network.Catalogue())
	env := &environment{lab: driver, workloads: catalogue.Workloads()}
	want := labTestbed
	if lacks := driver.Has(network.NeedBonding); errors.Is(lacks, testbed.ErrUnsupported) {
		want = vmTestbed
	}
	for name, c := range map[string]struct {
		study string
		given runOptions
		want  string
	}{
		"bonds":                  {"bonding", runOptions{}, want},
		"bonds here":             {"bonding", runOptions{testbed: labTestbed}, labTestbed},
		"what every machine has": {studies.Default, runOptions{}, labTestbed},
	} {
		s, err := env.readStudy(c.study)
		if err != nil {
			t.Fatal(err)
		}
		notes := env.toGuest(t.Context(), s, c.given)
		if s.Testbed.Kind != c.want || (len(notes) == 1) != (c.want == vmTestbed) || strings.Contains(strings.Join(notes, ""), "\n") {
			t.Errorf("%s: testbed %s, %q", name, s.Testbed.Kind, notes)
		}
	}
}
