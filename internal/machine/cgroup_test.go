package machine

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/prometheus/procfs"

	"netdelta/unit"
)

// Of nested control groups the one that leaves least counts; what the kernel can take back of it is free.
func TestControlGroupsLimitMemory(t *testing.T) {
	top := t.TempDir()
	files := memoryFiles{"memory.max", "memory.current", "inactive_file"}
	group := func(path, limit, used, cache string) {
		dir := filepath.Join(top, path)
		err := os.MkdirAll(dir, 0o755)
		for name, text := range map[string]string{files.limit: limit, files.used: used, "memory.stat": "anon 1\ninactive_file " + cache + "\n"} {
			err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), []byte(text+"\n"), 0o644))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	group("a", "1000", "400", "100")
	group("a/b", "max", "10", "0")
	group("a/c", "300", "350", "20")
	for path, want := range map[string]unit.Bytes{"/a/b": 700, "/a/c": 0, "/": math.MaxInt64, "/../other": math.MaxInt64} {
		if got := freeBelow(&procfs.MountInfo{Root: "/", MountPoint: top}, path, files); got != want {
			t.Errorf("%s leaves %d, want %d", path, got, want)
		}
	}
	if got := freeBelow(&procfs.MountInfo{Root: "/a", MountPoint: filepath.Join(top, "a")}, "/a/b", files); got != 700 {
		t.Errorf("where only its parent is mounted it leaves %d", got)
	}
	if _, err := FreeMemory(); err != nil {
		t.Error(err)
	}
}
