package supervisor

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/procfs"

	"netdelta/internal/machine"
	"netdelta/internal/owner"
)

// Folder is where a cluster keeps its files. A machine may have several clusters, each in a folder of its own.
type Folder string

// Own is the folder of this user's cluster: netdelta/cluster in the folder for caches.
func Own() (Folder, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find a place for the cluster's files: %w", err)
	}
	return Folder(filepath.Join(cache, "netdelta", "cluster")), nil
}

func (f Folder) path(parts ...string) string {
	return filepath.Join(append([]string{string(f)}, parts...)...)
}

// Kubeconfig is the file by which the cluster is reached, while it is up.
func (f Folder) Kubeconfig() string { return f.path("kubeconfig") }

// Log is the log of the last cluster's supervisor. The logs of its nodes are in the same folder.
func (f Folder) Log() string { return f.path("logs", "supervisor.log") }

// control is where the supervisor is spoken to.
func (f Folder) control() string { return f.path("control") }

// Mark is in the names of this folder's control groups, so that they are not confused with another cluster's.
func (f Folder) Mark() string {
	sum := sha256.Sum256([]byte(f))
	return fmt.Sprintf("netdelta-cluster-%x", sum[:4])
}

// make makes the folder, which no other user may look into: it holds the keys to the cluster.
func (f Folder) make() error {
	if err := os.MkdirAll(string(f), 0o700); err != nil {
		return fmt.Errorf("make the cluster's folder: %w", err)
	}
	return os.Chmod(string(f), 0o700)
}

// lock waits until no other program brings this cluster up or down. The lock ends with unlock, or with the program.
func (f Folder) lock() (unlock func() error, err error) {
	if err := f.make(); err != nil {
		return nil, err
	}
	if unlock, err = owner.Lock(context.Background(), f.path("lock")); err != nil {
		err = fmt.Errorf("lock the cluster's folder %s: %w", f, err)
	}
	return unlock, err
}

// sweep removes what an ended cluster left: its control groups, and its files but for the logs.
func (f Folder) sweep() error {
	if err := machine.RemoveControlGroup(f.Mark(), groupPatience); err != nil {
		return err
	}
	for _, name := range []string{"kubeconfig", "control", "nodes"} {
		if err := os.RemoveAll(f.path(name)); err != nil {
			return fmt.Errorf("remove what an ended cluster left: %w", err)
		}
	}
	return nil
}

// groupPatience is how long the kernel may take to let go of a control group whose last process has ended.
const groupPatience = 10 * time.Second

// hierarchies are where this machine's control groups of version 1 are mounted. The error says so where there is none with what a
// kubelet needs.
func hierarchies() ([]string, error) {
	mounts, err := procfs.GetMounts()
	if err != nil {
		return nil, err
	}
	var found []string
	controllers := map[string]string{}
	for _, m := range mounts {
		if m.FSType == "cgroup" {
			found = append(found, m.MountPoint)
			maps.Copy(controllers, m.SuperOptions)
		}
	}
	for _, need := range []string{"cpu", "cpuset", "memory", "pids", "devices"} {
		if _, there := controllers[need]; !there {
			return nil, fmt.Errorf("unsupported: the test cluster needs control groups of version 1 and this machine mounts none for %s: boot it with systemd.unified_cgroup_hierarchy=0, or use another machine", need)
		}
	}
	return found, nil
}

// makeGroups makes a control group for each node, mark/NODE in each hierarchy, and returns where a kubelet finds it.
func makeGroups(mark, node string) (string, error) {
	roots, err := hierarchies()
	if err != nil {
		return "", err
	}
	for _, root := range roots {
		for _, group := range []string{mark, filepath.Join(mark, node)} {
			folder := filepath.Join(root, group)
			if err := os.Mkdir(folder, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
				return "", fmt.Errorf("make the control group of node %s: %w", node, err)
			}
			if err := inheritSets(folder); err != nil {
				return "", err
			}
		}
	}
	return filepath.Join("/", mark, node), nil
}

// unifiedGroup makes a node's control group of version 2, mark/NODE, and returns its folder.
func unifiedGroup(mark, node string) (string, error) {
	mounts, err := procfs.GetMounts()
	if err != nil {
		return "", err
	}
	for _, m := range mounts {
		if m.FSType == "cgroup2" {
			folder := filepath.Join(m.MountPoint, mark, node)
			return folder, os.MkdirAll(folder, 0o755)
		}
	}
	return "", errors.New("unsupported: Cilium attaches programs to control groups of version 2 and this machine mounts none: " +
		"mount them in addition to version 1, as systemd's hybrid hierarchy does, or use another CNI")
}

// inheritSets gives a group the processors and memory of the one above it: a new one has none, and can't be entered.
func inheritSets(folder string) error {
	for _, set := range []string{"cpuset.cpus", "cpuset.mems"} {
		above, err := os.ReadFile(filepath.Join(filepath.Dir(folder), set))
		if errors.Is(err, fs.ErrNotExist) {
			continue // another hierarchy
		}
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, set), above, 0o644); err != nil {
			return fmt.Errorf("fill %s of a control group: %w", set, err)
		}
	}
	return nil
}
