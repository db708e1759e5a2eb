package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"netdelta/network"
	"netdelta/testbed"
)

// restorePatience is how long iptables-restore may take: seconds for ten thousand rules on a slow machine.
const restorePatience = 2 * time.Minute

// restore hands a table to iptables-restore inside a namespace.
func (s *space) restore(op network.IPTables) error {
	path, err := superuserTool(op.Program())
	if err != nil {
		return &testbed.UnsupportedError{
			Feature: "iptables", Need: "the program " + op.Program(), Fix: "install the package iptables",
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), restorePatience)
	defer cancel()
	cmd := exec.CommandContext(ctx, path)
	cmd.Stdin = strings.NewReader(op.Text())
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	lock, err := privateLock()
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	// It would take a lock of the whole machine for a table that is all our own.
	cmd.ExtraFiles = []*os.File{lock}
	cmd.Env = []string{"PATH=" + superuserPath, "LC_ALL=C", "XTABLES_LOCKFILE=/proc/self/fd/3"}
	var said []byte
	err = s.ns.Do(func() error {
		var err error
		said, err = cmd.CombinedOutput()
		return err
	})
	if err == nil {
		return nil
	}
	text := strings.TrimSpace(string(said))
	if len(text) > maxSaid {
		text = text[:maxSaid] + "..."
	}
	err = fmt.Errorf("%s: %w: %s", path, err, text)
	switch {
	case says(text, "Permission denied", "you must be root"):
		return errors.Join(unix.EPERM, err)
	case says(text, "missing kernel module", "unable to initialize", "initialize table", "No such file or directory", "not supported", "generation id"):
		return fmt.Errorf("%w: %w", errMissing, err)
	}
	return err
}

// maxSaid is how much of what a program says goes into an error, in bytes.
const maxSaid = 1000

// says tells whether a text holds one of several words.
func says(text string, words ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
}

// privateLock is a file of this program alone, which is gone when it is closed.
func privateLock() (*os.File, error) {
	fd, err := unix.MemfdCreate("lock", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make a file for a lock: %w", err)
	}
	return os.NewFile(uintptr(fd), "lock"), nil
}

// superuserPath is where programs for the superuser are, which the PATH of others often lacks.
const superuserPath = "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin"

// superuserTool finds a program on the PATH or where those for the superuser are.
func superuserTool(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	for dir := range strings.SplitSeq(superuserPath, ":") {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s: %w", name, exec.ErrNotFound)
}
