package cli_test

import (
	"path/filepath"
	"strings"
	"testing"

	"netdelta/result"
)

// Each run leaves a line for later ones, which say how many earlier ones their intervals rest on.
func TestRunsRestOnEarlierOnes(t *testing.T) {
	dir := labFolder(t)
	for i, out := range []string{"first", "second", "third"} {
		call(t, dir, statusDone, four("--out", out, "--quiet")...)
		lines := strings.Count(read(t, filepath.Join(dir, ".state", "netdelta", "history", "runs.jsonl")), "\n")
		run, err := result.Load(filepath.Join(dir, out))
		if err != nil || run.Repeating == nil || len(run.Repeating.Spreads) == 0 || lines > i+1 {
			t.Fatalf("%s run: %d lines, %+v: %v", out, lines, run.Repeating, err)
		}
		// A run that was disturbed too much has no interval to leave.
		if lines == i+1 && i == 2 && run.Repeating.Runs != 2 {
			t.Errorf("the third run rests on %d earlier ones", run.Repeating.Runs)
		}
		for _, d := range run.Deltas {
			if d.Headline && d.RatioLow != nil && d.Within == nil {
				t.Errorf("%s run: the interval of %s is of that run alone", out, d.Cell)
			}
		}
	}
}
