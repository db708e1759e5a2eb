package experiment_test

import (
	"strings"
	"testing"
	"time"

	"netdelta/experiment/plan"
	"netdelta/result"
)

// What is left out in the middle of the first build gives no trial, and what it had moved by then makes none of the others misrouted: they
// share devices.
func TestLeftOutInTheFirstBuild(t *testing.T) {
	s := small([]string{"host", "bridge", "vxlan"})
	s.Design.Rounds, s.Design.Burst, s.Design.Margin = 0, time.Millisecond, 0
	c := setUp(t, s, 6, nil)
	// As guessed all fits; as it turns out, two placements don't, whatever they take.
	c.Rules.MaxBuilds, c.Rules.Rounds, c.Rules.MinRounds, c.Rules.Budget = 0, 0, 100_000, 10*time.Second
	c.Costs = plan.Costs{Burst: time.Nanosecond}
	run := mustRun(t, c)
	skipped := 0
	for _, cell := range run.Cells {
		if within := cell.Placement == result.SameNode; (cell.Skipped != "") != within {
			t.Errorf("%s is left out: %q", cell.ID, cell.Skipped)
		} else if within {
			skipped++
		}
	}
	trials := journal(t, c)
	for _, tr := range trials {
		if strings.Contains(tr.Cell, string(result.SameNode)) {
			t.Errorf("%s was left out and has a trial", tr.Cell)
		}
		if tr.Failed != "" || tr.Path == nil || !tr.Path.OK {
			t.Errorf("%s: failed %q, path %+v", tr.ID(), tr.Failed, tr.Path)
		}
	}
	if len(trials) == 0 || skipped == 0 {
		t.Errorf("%d trials, %d cells left out", len(trials), skipped)
	}
}
