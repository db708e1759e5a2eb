package daemon_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"netdelta/internal/daemon"
	"netdelta/internal/require"
	"netdelta/unit"
)

// A sandbox that is but a folder ends all that was started in it, also what has left its parents, and is gone then. Others live on.
func TestPlainHome(t *testing.T) {
	above := t.TempDir()
	t.Setenv(daemon.FolderVariable, above)
	one, other := open(t, unit.MiB), open(t, unit.MiB)
	if one.Path("a") == other.Path("a") || filepath.Dir(one.Path()) != above {
		t.Fatalf("sandboxes are at %s and %s", one.Path(), other.Path())
	}
	if err := one.Write("a/b", []byte("x"), 0o644, ""); err != nil {
		t.Fatal(err)
	}
	if out, err := one.Run(t.Context(), daemon.Spec{Path: "cat", Args: []string{"a/b"}}); err != nil || string(out) != "x" {
		t.Errorf("%q, %v", out, err)
	}
	pids := []int{}
	for _, h := range []*daemon.Sandbox{one, other} {
		d, err := h.Start(daemon.Spec{Path: "sh", Args: []string{"-c", "(setsid sleep 600 & echo $! >stray); sleep 600"}})
		if err != nil {
			t.Fatal(err)
		}
		var stray int
		require.NoError(t, require.Await(patience, "the daemon says which process it leaves", func() error {
			text, err := os.ReadFile(h.Path("stray"))
			if err == nil {
				stray, err = strconv.Atoi(strings.TrimSpace(string(text)))
			}
			return err
		}))
		pids = append(pids, d.PID(), stray)
	}
	if err := one.Close(); err != nil {
		t.Error(err)
	}
	for i, pid := range pids {
		if err := unix.Kill(pid, 0); errors.Is(err, unix.ESRCH) != (i < 2) {
			t.Errorf("process %d of %v: %v", i, pids, err)
		}
	}
	if _, err := os.Stat(one.Path()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the sandbox is left: %v", err)
	}
	// The stray process is now this process's child, as orphans are children of a container's first process.
	daemon.EndOrphans()
	require.Ended(t, patience, pids[3])
	if state(t, pids[3]) != "Z" {
		t.Error("a process without an owner was waited for")
	}
	if err := other.Close(); err != nil {
		t.Error(err)
	}
	for { // what ended by itself, which a container's first process waits for
		if pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil); pid <= 0 && !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// state is the state of a process, as /proc has it.
func state(t *testing.T, pid int) string {
	t.Helper()
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))[0]
}
