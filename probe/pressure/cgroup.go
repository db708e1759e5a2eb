package pressure

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/prometheus/procfs"

	"netdelta/internal/machine"
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
	for _, g := range machine.ControlGroups(groups, mounts, "cpu") {
		c, err := openCounters(filepath.Join(g.Dir, "cpu.stat"))
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
