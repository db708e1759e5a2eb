package pressure

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/prometheus/procfs"

	"netdelta/internal/procfile"
)

// openGroups opens cpu.stat of this process's control group and of all above it, in each hierarchy that limits processor time:
// a limit stops all below it, and is counted where it was set. There are none where control groups are not to be seen.
func openGroups(root string) ([]*procfile.File, error) {
	proc, err := procfs.NewFS(root)
	if err != nil {
		return nil, err
	}
	self, err := proc.Self()
	if missing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("finding this process: %w", err)
	}
	groups, err := self.Cgroups()
	if missing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("finding this process's control groups: %w", err)
	}
	mounts, err := self.MountInfo()
	if err != nil {
		return nil, fmt.Errorf("finding this process's control groups: %w", err)
	}
	var open []*procfile.File
	for _, dir := range groupFolders(groups, mounts) {
		c, err := openCounters(filepath.Join(dir, "cpu.stat"))
		if err != nil {
			for _, o := range open {
				err = errors.Join(err, o.Close())
			}
			return nil, err
		}
		if c == nil {
			continue
		}
		// The topmost group of version 2 has a cpu.stat, but no limit.
		if text, err := c.Read(); err == nil && bytes.Contains(text, []byte("nr_throttled")) {
			open = append(open, c)
		} else if err := c.Close(); err != nil {
			return nil, err
		}
	}
	return open, nil
}

// groupFolders are the folders of the control groups that a process is in, each with all above it.
func groupFolders(groups []procfs.Cgroup, mounts []*procfs.MountInfo) []string {
	var found []string
	for _, g := range groups {
		for _, m := range mounts {
			unified := g.HierarchyID == 0 && m.FSType == "cgroup2"
			_, limits := m.SuperOptions["cpu"]
			if !unified && !(slices.Contains(g.Controllers, "cpu") && m.FSType == "cgroup" && limits) {
				continue
			}
			for _, dir := range upwards(m.MountPoint, m.Root, g.Path) {
				if !slices.Contains(found, dir) {
					found = append(found, dir)
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
