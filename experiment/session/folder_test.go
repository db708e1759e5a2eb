package session

import (
	"path/filepath"
	"sync"
	"testing"
)

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
