package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"netdelta/insight"
	"netdelta/result"
)

// Each run leaves a line for later ones, which say how many earlier ones their intervals rest on.
func TestRunsRestOnEarlierOnes(t *testing.T) {
	dir := labFolder(t)
	kept := 0
	for _, out := range []string{"first", "second", "third"} {
		call(t, dir, statusDone, four("--out", out, "--quiet")...)
		run, err := result.Load(filepath.Join(dir, out))
		if err != nil || run.Repeating == nil || len(run.Repeating.Spreads) == 0 {
			t.Fatalf("%s run: %+v: %v", out, run.Repeating, err)
		}
		if kept > 1 && run.Repeating.Runs != kept {
			t.Errorf("the %s run rests on %d earlier ones, want %d", out, run.Repeating.Runs, kept)
		}
		for _, d := range run.Deltas {
			if d.Headline && d.RatioLow != nil && d.Within == nil {
				t.Errorf("%s run: the interval of %s is of that run alone", out, d.Cell)
			}
		}
		// A run on a machine that was busy throughout, or that was disturbed too much for intervals, leaves nothing.
		if len(insight.Past(run)) > 0 {
			kept++
		}
		lines := 0
		if text, err := os.ReadFile(filepath.Join(dir, ".state", "netdelta", "history", "runs.jsonl")); err == nil {
			lines = strings.Count(string(text), "\n")
		}
		if lines != kept {
			t.Errorf("after the %s run %d runs are kept, want %d", out, lines, kept)
		}
	}
}
