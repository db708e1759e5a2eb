package supervisor

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"netdelta/internal/machine"
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
	file, err := os.OpenFile(f.path("lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the cluster's lock: %w", err)
	}
	for {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX)
		if err == nil {
			return file.Close, nil
		}
		if !errors.Is(err, unix.EINTR) {
			return nil, errors.Join(fmt.Errorf("lock the cluster's folder %s: %w", f, err), file.Close())
		}
	}
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
