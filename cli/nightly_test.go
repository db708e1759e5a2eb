package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"netdelta/internal/require"
	"netdelta/result"
)

// A night is compared with the last whole one, whatever else is in the folder, and the oldest go. A lab does as well as a cluster.
func TestNightly(t *testing.T) {
	require.Long(t)
	whole, _, _ := wholeRun(t)
	dir := labFolder(t)
	nights := filepath.Join(dir, "nights")
	night := func(more ...string) ending {
		return call(t, dir, statusDone, append([]string{"kube", "nightly", "small.yaml", "--runs", "nights", "--keep", "2", "--margin", "50%", "--", "--testbed", "lab", "--quiet"}, more...)...)
	}
	night("--networks", "host", "--builds", "1").shows(t, "no earlier run of small in nights")
	if first := entries(t, nights); len(first) != 1 {
		t.Fatalf("the folder has %v", first)
	}
	if err := os.RemoveAll(nights); err != nil {
		t.Fatal(err)
	}
	// The run of an earlier night.
	earlier := filepath.Join(nights, "earlier")
	if err := os.CopyFS(earlier, os.DirFS(filepath.Join(whole, "run"))); err != nil {
		t.Fatal(err)
	}
	// A run that was cut short, and what is none.
	cut := filepath.Join(nights, "cut")
	if err := os.CopyFS(cut, os.DirFS(earlier)); err != nil {
		t.Fatal(err)
	}
	record := read(t, filepath.Join(cut, result.ResultFile))
	run := decode(t, record)
	write(t, filepath.Join(cut, result.ResultFile), strings.Replace(record, `"ended": "`+run.Ended+`"`, `"ended": "interrupted"`, 1))
	emptied(t, earlier, filepath.Join(nights, "empty"))
	write(t, filepath.Join(nights, "notes.txt"), "mine\n")

	second := night("--builds", "4").shows(t, "compare old "+run.Run, "::notice title=netdelta compare::")
	if strings.Contains(second.stdout, "::error") {
		t.Errorf("the second night finds:\n%s", second.stdout)
	}
	left := entries(t, nights)
	if len(left) != 3 || !slices.Contains(left, "notes.txt") {
		t.Errorf("of four runs %v are left, want two and the notes", left)
	}
}

// emptied copies a run folder as one of a run that measured nothing.
func emptied(t *testing.T, from, to string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	run, err := result.Load(to)
	if err != nil {
		t.Fatal(err)
	}
	run.Deltas = []result.Delta{}
	data, err := json.Marshal(run)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(to, result.ResultFile), string(data))
}
