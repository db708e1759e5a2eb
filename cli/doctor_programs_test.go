package cli

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"netdelta/result"
	"netdelta/workload"
)

// stored is a workload of which one variant needs a program that no machine has, and the other one that all have.
func stored() workload.Workload {
	return workload.Workload{
		Name: "stored", Summary: "for this test", Headline: "p50", Defaults: result.Params{Own: result.OwnOf("store", "nbd")},
		Check: func(p result.Params) error { return result.Unused(p, []result.Parameter{{Key: "store"}}) },
		Demand: func(p result.Params) workload.Demand {
			needs := []workload.Program{{Name: "sh", Package: "dash"}}
			if p.Own.Word("store") == "ceph" {
				needs = append(needs, workload.Program{Name: "no-such-daemon", Package: "no-such-package"})
			}
			return workload.Demand{Programs: needs}
		},
	}
}

// TestMissingProgramsAreNamed holds that a program which a workload needs and this machine lacks is said, with the variant that
// needs it and the package that has it, by doctor and by list.
func TestMissingProgramsAreNamed(t *testing.T) {
	var out bytes.Buffer
	env := &environment{out: &out, workloads: []workload.Workload{stored()}}
	findings, err := env.examinePrograms()
	if err != nil {
		t.Fatal(err)
	}
	want := []finding{
		{Topic: "workload stored", OK: true, Says: "runs sh"},
		{
			Topic: "workload stored, store=ceph", Says: "no-such-daemon not found: cells of this workload are unsupported",
			Fix: workload.Installation([]string{"no-such-package"}),
		},
	}
	if !slices.Equal(findings, want) {
		t.Errorf("doctor finds %+v", findings)
	}
	entries, err := workloadEntries(t.Context(), env)
	if err != nil {
		t.Fatal(err)
	}
	if line := strings.Join(entries[0].line, "  "); !strings.HasSuffix(line, "not found here: stored, store=ceph needs no-such-daemon") {
		t.Errorf("list says %q", line)
	}
}

// What a cluster says reaches the terminal in errors, too: nothing of it is obeyed there, nor by a server of continuous integration.
func TestErrorsAreHarmless(t *testing.T) {
	var out bytes.Buffer
	printError(&out, "its pod was stopped: \x1b[2J\x1b]0;title\a\u202e\n::error file=x::y\n  ::stop-commands::z\n##[group]g\nSee 'netdelta run --help'.")
	want := "netdelta: its pod was stopped: ?[2J?]0;title??\n- ::error file=x::y\n- ::stop-commands::z\n- ##[group]g\nSee 'netdelta run --help'.\n"
	if got := out.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
