package daemon

import (
	"errors"
	"fmt"
	"io/fs"
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
