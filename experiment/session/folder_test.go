package session

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"netdelta/result"
)

// A run that waits for its turn hides none that measured: it is not the latest yet.
func TestLatestMeasures(t *testing.T) {
	t.Chdir(t.TempDir())
	latest := filepath.Join(Runs, "latest")
	var run result.Run
	folder, err := Location{}.Open("a", []byte("study: a\n"), &run)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = folder.Close() })
	if _, err := os.Lstat(latest); !os.IsNotExist(err) {
		t.Errorf("a run that has only its folder is the latest: %v", err)
	}
	Location{}.markLatest(run.Run)
	if to, err := os.Readlink(latest); err != nil || to != run.Run {
		t.Errorf("the latest run is %q (%v), want %q", to, err, run.Run)
	}
}

// A run that was interrupted before it had its turn leaves nothing behind; one that was to go on keeps what it has.
func TestAbandonedRunLeavesNothing(t *testing.T) {
	t.Chdir(t.TempDir())
	var run result.Run
	folder, err := Location{}.Open("a", []byte("study: a\n"), &run)
	if err != nil {
		t.Fatal(err)
	}
	if err := (Location{}).abandon(folder); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(Runs); err != nil || len(left) > 0 {
		t.Errorf("%v (%v) is left", left, err)
	}
	for _, l := range []Location{{Out: "named"}, {Resume: "named"}} {
		folder, err := CreateFolder("named", []byte("study: a\n"))
		if err != nil {
			t.Fatal(err)
		}
		if err := l.abandon(folder); err != nil {
			t.Error(err)
		}
		if left, err := os.ReadDir("named"); err != nil || (len(left) > 0) != (l.Resume != "") {
			t.Errorf("%+v: %v (%v) is left", l, left, err)
		}
	}
	if err := (Location{}).abandon(nil); err != nil {
		t.Error(err)
	}
}

// Runs that start in the same second have folders of their own.
func TestFreshFoldersDoNotMeet(t *testing.T) {
	parent := filepath.Join(t.TempDir(), "runs")
	var mu sync.Mutex
	seen := map[string]bool{}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			path, err := FreshFolder(parent, "latency-1")
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			if seen[path] {
				t.Errorf("%s was given twice", path)
			}
			seen[path] = true
		})
	}
	all.Wait()
	if !seen[filepath.Join(parent, "latency-1")] || !seen[filepath.Join(parent, "latency-1-20")] {
		t.Errorf("the folders are %v", seen)
	}
}
