package machine

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/prometheus/procfs"

	"netdelta/unit"
)

// Of nested control groups the one that leaves least counts; what the kernel can take back of it is free.
func TestControlGroupsLimitMemory(t *testing.T) {
	top := t.TempDir()
	group := func(path, limit, used, cache string) {
		dir := filepath.Join(top, path)
		err := os.MkdirAll(dir, 0o755)
		for name, text := range map[string]string{"memory.max": limit, "memory.current": used, "memory.stat": "anon 1\ninactive_file " + cache + "\n"} {
			err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), []byte(text+"\n"), 0o644))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	group("a", "1000", "400", "100")
	group("a/b", "max", "10", "0")
	group("a/c", "300", "350", "20")
	free := func(root, mountPoint, path string) unit.Bytes {
		mounts := []*procfs.MountInfo{{Root: root, MountPoint: mountPoint, FSType: "cgroup2"}}
		return freeIn(ControlGroups([]procfs.Cgroup{{Path: path}}, mounts, "memory"))
	}
	for path, want := range map[string]unit.Bytes{"/a/b": 700, "/a/c": 0, "/": math.MaxInt64, "/../other": math.MaxInt64} {
		if got := free("/", top, path); got != want {
			t.Errorf("%s leaves %d, want %d", path, got, want)
		}
	}
	if got := free("/a", filepath.Join(top, "a"), "/a/b"); got != 700 {
		t.Errorf("where only its parent is mounted it leaves %d", got)
	}
	if _, err := FreeMemory(); err != nil {
		t.Error(err)
	}
}

func TestUpwards(t *testing.T) {
	for _, c := range []struct {
		mounted, group string
		want           []string
	}{
		{"/", "/", []string{"/sys/g"}},
		{"/", "/a/b", []string{"/sys/g/a/b", "/sys/g/a", "/sys/g"}},
		{"/a", "/a/b", []string{"/sys/g/b", "/sys/g"}},
		{"/docker/1", "/kubepods/2", []string{"/sys/g"}}, // the mount shows another part of the tree
		{"/", "/../../x", []string{"/sys/g"}},            // a group outside of this namespace
	} {
		if got := upwards("/sys/g", c.mounted, c.group); !slices.Equal(got, c.want) {
			t.Errorf("%s in %s: %v, want %v", c.group, c.mounted, got, c.want)
		}
	}
}
