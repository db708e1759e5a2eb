package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// ErrMissing is matched by the error of a program that is not installed.
var ErrMissing = errors.New("program is not installed")

// systemFolders are searched after PATH, which processes in pods lack, and which ordinary users have without the folders
// of daemons.
const systemFolders = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Look finds a program: in PATH, then in the folders of system programs. A path is taken as it is, and may name a library
// that a program loads. The error matches ErrMissing where there is none.
func Look(name string) (string, error) {
	if strings.Contains(name, "/") {
		if _, err := os.Stat(name); errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("%w: %s", ErrMissing, name)
		}
		return name, nil
	}
	for _, folder := range filepath.SplitList(os.Getenv("PATH") + ":" + systemFolders) {
		if folder == "" {
			continue // the current folder is no place for a system's program
		}
		if path, err := exec.LookPath(filepath.Join(folder, name)); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%w: %s", ErrMissing, name)
}

// PortFree finds out that a server could listen on a TCP port in this process's network namespace, for servers that say so late,
// elsewhere or not at all. Connections of an earlier server in TIME_WAIT are no hindrance. The error matches EADDRINUSE where
// another has the port; port 0 is refused, since clients would not know which it became.
func PortFree(ctx context.Context, at netip.AddrPort) error {
	if at.Port() == 0 {
		return errors.New("port 0 is not possible: ports are pinned")
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", at.String())
	if err != nil {
		return err
	}
	return l.Close()
}
