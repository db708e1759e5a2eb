package machine

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"

	"netdelta/unit"
)

// memoryFiles are what a control group's memory is told by, in both versions of control groups: its limit, what is used of it, and
// the part of that which the kernel gives back when it is short, by its key in memory.stat.
type memoryFiles struct{ limit, used, cache string }

// controlled is what the control groups of this program leave it of memory; the greatest number where they don't limit it, or can't
// be read.
func controlled() unit.Bytes {
	free := unit.Bytes(math.MaxInt64)
	self, err := procfs.Self()
	if err != nil {
		return free
	}
	groups, err := self.Cgroups()
	if err != nil {
		return free
	}
	mounts, err := procfs.GetMounts()
	if err != nil {
		return free
	}
	for _, g := range groups {
		for _, m := range mounts {
			_, memory := m.SuperOptions["memory"]
			switch {
			case m.FSType == "cgroup" && memory && slices.Contains(g.Controllers, "memory"):
				free = min(free, freeBelow(m, g.Path, memoryFiles{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"}))
			case m.FSType == "cgroup2" && g.HierarchyID == 0:
				free = min(free, freeBelow(m, g.Path, memoryFiles{"memory.max", "memory.current", "inactive_file"}))
			}
		}
	}
	return free
}

// freeBelow is the least that a control group and those above it leave, as far as they are mounted.
func freeBelow(m *procfs.MountInfo, group string, files memoryFiles) unit.Bytes {
	free := unit.Bytes(math.MaxInt64)
	below, err := filepath.Rel(m.Root, group)
	if err != nil || below == ".." || strings.HasPrefix(below, "../") {
		below = "." // what is mounted is this program's own
	}
	for ; ; below = filepath.Dir(below) {
		dir := filepath.Join(m.MountPoint, below)
		limit, limited := number(filepath.Join(dir, files.limit))
		used, known := number(filepath.Join(dir, files.used))
		if limited && known {
			free = min(free, max(limit-used+statistic(filepath.Join(dir, "memory.stat"), files.cache), 0))
		}
		if below == "." {
			return free
		}
	}
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
