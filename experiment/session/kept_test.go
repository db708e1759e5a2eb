package session_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"netdelta/experiment/plan"
	"netdelta/experiment/session"
	"netdelta/result"
)

// Of the runs of a study the latest whole one is found, the earliest are removed, and nothing else is touched.
func TestKeptRuns(t *testing.T) {
	parent := t.TempDir()
	for i, run := range []result.Run{
		{Study: "a", Ended: plan.EndedBuilds, Deltas: []result.Delta{{}}},
		{Study: "b", Ended: plan.EndedBuilds, Deltas: []result.Delta{{}}},
		{Study: "a", Ended: plan.EndedBuilds, Deltas: []result.Delta{{}}},
		{Study: "a", Ended: plan.EndedInterrupted, Deltas: []result.Delta{{}}},
		{Study: "a", Ended: plan.EndedBuilds},
	} {
		folder, err := result.Create(filepath.Join(parent, string(rune('0'+i))), []byte("study: x\n"))
		if err != nil {
			t.Fatal(err)
		}
		run.Schema, run.Started = result.Schema, time.Unix(int64(i), 0)
		if err := folder.WriteResult(run); err != nil {
			t.Fatal(err)
		}
		if err := folder.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(parent, "mine"), 0o755); err != nil {
		t.Fatal(err)
	}
	all, err := session.RunsOf(parent, "a")
	if err != nil || len(all) != 4 || filepath.Base(session.LatestWhole(all)) != "2" {
		t.Errorf("%d runs, the latest whole one is %s: %v", len(all), session.LatestWhole(all), err)
	}
	if err := session.Prune(parent, "a", 2); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"0": false, "1": true, "2": false, "3": true, "4": true, "mine": true} {
		if _, err := os.Stat(filepath.Join(parent, name)); (err == nil) != want {
			t.Errorf("%s is there: %v, want %v", name, err == nil, want)
		}
	}
	if none, err := session.RunsOf(filepath.Join(parent, "none"), "a"); err != nil || len(none) != 0 {
		t.Errorf("a folder that is not there: %v, %v", none, err)
	}
}
