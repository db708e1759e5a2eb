package experiment

import (
	"slices"
	"strings"
	"testing"

	"netdelta/experiment/study"
	"netdelta/result"
)

// TestClaimsAreRecordedUnjudged holds that a run carries the whole of each claim, so that it can be judged again from its
// folder.
func TestClaimsAreRecordedUnjudged(t *testing.T) {
	s := &study.Study{Claims: []study.Claim{{ID: "a", Says: "b", Source: "c", Published: "d", Expect: "p50 of bridge above host"}}}
	want := []result.Claim{{ID: "a", Says: "b", Source: "c", Published: "d", Expect: "p50 of bridge above host", Verdict: "not-tested"}}
	if got := study.Untested(s.Claims); !slices.Equal(got, want) {
		t.Errorf("claims %+v, want %+v", got, want)
	}
}

// On one processor a cell of two would be measured as a saturated one, under a false name.
func TestTooFewProcessors(t *testing.T) {
	cell := func(workload, cpu string) result.Cell {
		return result.Cell{Workload: workload, Params: result.Params{CPU: cpu}}
	}
	for _, c := range []struct {
		cell    result.Cell
		cpus    int
		refused bool
	}{
		{cell("tcp-rr", "two"), 1, true},
		{cell("tcp-rr", "two"), 2, false},
		{cell("tcp-rr", "same"), 1, false},
		{cell("tcp-stream", "two"), 1, false}, // which has no regimes
	} {
		why := tooFewProcessors(c.cell, c.cpus)
		if (why != "") != c.refused || c.refused && !strings.Contains(why, "regime=waking") {
			t.Errorf("%+v on %d processors: %q", c.cell, c.cpus, why)
		}
	}
}
