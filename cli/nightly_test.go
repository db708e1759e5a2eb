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
	dir := labFolder(t)
	night := func(status int) ending {
		return call(t, dir, status, "kube", "nightly", "small.yaml", "--runs", "nights", "--keep", "2", "--margin", "50%", "--", "--testbed", "lab", "--builds", "4", "--quiet")
	}
	night(statusDone).shows(t, "There is no earlier run of small in nights: the next one is compared with this.")
	first := entries(t, filepath.Join(dir, "nights"))
	if len(first) != 1 {
		t.Fatalf("the folder has %v", first)
	}
	// A run that was cut short, and what is none.
	cut := filepath.Join(dir, "nights", "cut")
	if err := os.CopyFS(cut, os.DirFS(filepath.Join(dir, "nights", first[0]))); err != nil {
		t.Fatal(err)
	}
	record := read(t, filepath.Join(cut, result.ResultFile))
	whole := decode(t, record)
	write(t, filepath.Join(cut, result.ResultFile), strings.Replace(record, `"ended": "`+whole.Ended+`"`, `"ended": "interrupted"`, 1))
	emptied(t, filepath.Join(dir, "nights", first[0]), filepath.Join(dir, "nights", "empty"))
	write(t, filepath.Join(dir, "nights", "notes.txt"), "mine\n")

	second := night(statusDone).shows(t, "compare old "+whole.Run, "::notice title=netdelta compare::")
	if strings.Contains(second.stdout, "::error") {
		t.Errorf("the second night finds:\n%s", second.stdout)
	}
	left := entries(t, filepath.Join(dir, "nights"))
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
