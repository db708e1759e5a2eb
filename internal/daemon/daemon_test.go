package daemon_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"netdelta/internal/daemon"
	"netdelta/internal/require"
	"netdelta/unit"
)

func open(t *testing.T, size unit.Bytes) *daemon.Sandbox {
	t.Helper()
	require.Namespaces(t)
	h, err := daemon.Open(size)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

func TestHomeIsSeenByItsProgramsAlone(t *testing.T) {
	h := open(t, unit.MiB)
	if err := h.Write("a/b", []byte("here"), 0o644, ""); err != nil {
		t.Fatal(err)
	}
	out, err := h.Run(t.Context(), daemon.Spec{Path: "cat", Args: []string{filepath.Join(daemon.Folder, "a/b")}})
	if err != nil || string(out) != "here" {
		t.Errorf("a program of the sandbox reads %q, %v", out, err)
	}
	if _, err := os.Stat(filepath.Join(daemon.Folder, "a/b")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the rest of this process sees the sandbox: %v", err)
	}
}

// Programs look themselves and their children up by the numbers that they know.
func TestHomeShowsItsProcesses(t *testing.T) {
	h := open(t, unit.MiB)
	out, err := h.Run(t.Context(), daemon.Spec{Path: "sh", Args: []string{"-c", "echo $$; exec readlink /proc/self"}})
	if own, shown, _ := strings.Cut(strings.TrimSpace(string(out)), "\n"); err != nil || own != shown {
		t.Errorf("a process of number %s finds itself at %s: %v", own, shown, err)
	}
}

func TestHomeIsLimited(t *testing.T) {
	h := open(t, 64*unit.KiB)
	err := h.Write("big", make([]byte, 128<<10), 0o644, "")
	if !errors.Is(err, unix.ENOSPC) {
		t.Errorf("a file that does not fit: %v", err)
	}
	if _, err := daemon.Open(1 << 60); err == nil || !strings.Contains(err.Error(), "is free") {
		t.Errorf("a sandbox larger than the machine: %v", err)
	}
}

func TestLastWords(t *testing.T) {
	h := open(t, unit.MiB)
	d, err := h.Start(daemon.Spec{Name: "sayer", Path: "sh", Args: []string{"-c", "echo no such luck >&2; exit 3"}})
	if err != nil {
		t.Fatal(err)
	}
	<-d.Ended()
	if err := d.Err(); err == nil || err.Error() != "sayer: exit status 3; its last words: no such luck" {
		t.Errorf("%v", err)
	}
	_, err = h.Run(t.Context(), daemon.Spec{Path: "sh", Args: []string{"-c", "echo out; echo why >&2; exit 1"}})
	if err == nil || !strings.Contains(err.Error(), "why") {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err = h.Run(ctx, daemon.Spec{Path: "sleep", Args: []string{"60"}}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}

func TestCloseEndsEverything(t *testing.T) {
	h := open(t, unit.MiB)
	polite, err := h.Start(daemon.Spec{Path: "sleep", Args: []string{"60"}, User: "nobody"})
	if err != nil {
		t.Fatal(err)
	}
	deaf, err := h.Start(daemon.Spec{Name: "deaf", Path: "sh", Args: []string{"-c", "trap '' TERM; while :; do sleep 1; done"}, Grace: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	// The kernel counts the first pages of a process on each processor by itself, and not yet as memory of the process.
	require.Eventually(t, patience, "a running daemon has memory", func() bool {
		require.NoError(t, polite.Err())
		return polite.Memory() > 0
	})
	for range 2 {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, d := range []*daemon.Daemon{polite, deaf} {
		if err := unix.Kill(d.PID(), 0); !errors.Is(err, unix.ESRCH) {
			t.Errorf("%s is still there: %v", d.Name(), err)
		}
	}
	if _, err := h.Start(daemon.Spec{Path: "true"}); !errors.Is(err, daemon.ErrClosed) {
		t.Errorf("starting in a closed sandbox: %v", err)
	}
}

func TestLook(t *testing.T) {
	t.Setenv("PATH", "")
	if path, err := daemon.Look("sh"); err != nil || !filepath.IsAbs(path) {
		t.Errorf("sh is at %q: %v", path, err)
	}
	for _, missing := range []string{"no-such-program", "/usr/lib/no-such-library.so"} {
		if _, err := daemon.Look(missing); !errors.Is(err, daemon.ErrMissing) {
			t.Errorf("%s: %v", missing, err)
		}
	}
}
