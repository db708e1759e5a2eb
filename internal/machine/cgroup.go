package machine

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"netdelta/unit"
)

// ControlGroup is the folder of a control group, of version 2 where it is unified.
type ControlGroup struct {
	Dir     string
	Unified bool
}

// ControlGroups are the control groups that a process is in, each with all above it, in the hierarchies that a controller limits.
func ControlGroups(groups []procfs.Cgroup, mounts []*procfs.MountInfo, controller string) []ControlGroup {
	var found []ControlGroup
	for _, g := range groups {
		for _, m := range mounts {
			unified := g.HierarchyID == 0 && m.FSType == "cgroup2"
			_, limits := m.SuperOptions[controller]
			if !unified && !(slices.Contains(g.Controllers, controller) && m.FSType == "cgroup" && limits) {
				continue
			}
			for _, dir := range upwards(m.MountPoint, m.Root, g.Path) {
				if c := (ControlGroup{dir, unified}); !slices.Contains(found, c) {
					found = append(found, c)
				}
			}
		}
	}
	return found
}

// upwards are the folders from a group's own to the top of what is mounted. Of a group that is not below what is mounted, as
// in a container that shows its host's names, only the top can be known.
func upwards(mountPoint, mounted, group string) []string {
	below, ok := strings.CutPrefix(group, strings.TrimSuffix(mounted, "/")+"/")
	if !ok || strings.Contains("/"+below+"/", "/../") {
		return []string{mountPoint}
	}
	var dirs []string
	for dir := filepath.Join(mountPoint, below); ; dir = filepath.Dir(dir) {
		dirs = append(dirs, dir)
		if len(dir) <= len(mountPoint) {
			return dirs
		}
	}
}

// controlled is what the control groups of this program leave it of memory; the greatest number where they don't limit it, or can't
// be read.
func controlled() unit.Bytes {
	self, err := procfs.Self()
	if err != nil {
		return math.MaxInt64
	}
	groups, err := self.Cgroups()
	if err != nil {
		return math.MaxInt64
	}
	mounts, err := procfs.GetMounts()
	if err != nil {
		return math.MaxInt64
	}
	return freeIn(ControlGroups(groups, mounts, "memory"))
}

// freeIn is the least that control groups leave of memory. What the kernel gives back when it is short counts as free.
func freeIn(groups []ControlGroup) unit.Bytes {
	free := unit.Bytes(math.MaxInt64)
	for _, g := range groups {
		limitFile, usedFile, cache := "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"
		if g.Unified {
			limitFile, usedFile, cache = "memory.max", "memory.current", "inactive_file"
		}
		limit, limited := number(filepath.Join(g.Dir, limitFile))
		used, known := number(filepath.Join(g.Dir, usedFile))
		if limited && known {
			free = min(free, max(limit-used+statistic(filepath.Join(g.Dir, "memory.stat"), cache), 0))
		}
	}
	return free
}

// number reads a file with one number. A group without a limit says "max", or a number that no machine has.
func number(path string) (unit.Bytes, bool) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return unit.Bytes(n), err == nil && n < math.MaxInt64/2
}

// statistic is a value of a file of keys and values, 0 where it has none.
func statistic(path, key string) unit.Bytes {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == key {
			n, _ := strconv.ParseInt(f[1], 10, 64)
			return unit.Bytes(n)
		}
	}
	return 0
}

// RemoveControlGroup removes a control group in each hierarchy by its name there, with the groups below it, also those that others made. It
// waits so long for their processes to have ended.
func RemoveControlGroup(name string, patience time.Duration) error {
	roots, err := filepath.Glob("/sys/fs/cgroup/*/" + name)
	if err != nil {
		return err
	}
	roots = append(roots, "/sys/fs/cgroup/"+name)
	for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		var failed error
		for _, root := range roots {
			failed = errors.Join(failed, removeGroup(root))
		}
		if failed == nil || time.Now().After(deadline) {
			return failed
		}
	}
}

func removeGroup(folder string) error {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() {
			if err := removeGroup(filepath.Join(folder, e.Name())); err != nil {
				return err
			}
		}
	}
	if err := unix.Rmdir(folder); err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("remove the control group %s: %w", folder, err)
	}
	return nil
}
