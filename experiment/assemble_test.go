package experiment

import (
	"slices"
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
