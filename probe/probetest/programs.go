package probetest

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"netdelta/internal/require"
	"netdelta/testbed"
)

// Supported fails the test for an error, and skips it for one that says that this machine or user lacks something.
func Supported(t *testing.T, err error) {
	t.Helper()
	var unsupported *testbed.UnsupportedError
	var refused *testbed.PermissionError
	switch {
	case errors.As(err, &unsupported):
		require.Need(t, unsupported.Need, false)
	case errors.As(err, &refused):
		require.Need(t, refused.Need, false)
	case err != nil:
		t.Fatal(err)
	}
}

// Killed starts this same test in another process, where it has hold load eBPF programs and hang, kills that, and sees that the
// kernel holds no more programs of the given names afterwards than before. variable is the environment variable by which the
// other process knows what it is.
func Killed(t *testing.T, variable string, names []string, hold func()) {
	t.Helper()
	if os.Getenv(variable) != "" {
		hold()
		_, _ = os.Stdout.WriteString("holding\n")
		select {}
	}
	before := programs(t, names)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), variable+"=1")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill() // again, if all went well
		_ = cmd.Wait()
	}()
	if _, err := stdout.Read(make([]byte, len("holding\n"))); err != nil {
		t.Fatal(err)
	}
	if programs(t, names) <= before {
		t.Fatal("the other process has loaded nothing")
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	for deadline := time.Now().Add(10 * time.Second); programs(t, names) > before; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d programs, %d before", programs(t, names), before)
		}
	}
}

// programs counts the eBPF programs of the given names that the kernel holds.
func programs(t *testing.T, names []string) int {
	t.Helper()
	count := 0
	for id := ebpf.ProgramID(0); ; {
		next, err := ebpf.ProgramGetNextID(id)
		if errors.Is(err, os.ErrNotExist) {
			return count
		}
		if err != nil {
			t.Fatal(err)
		}
		id = next
		if slices.Contains(names, programName(t, id)) {
			count++
		}
	}
}

// programName is "" for a program that has gone.
func programName(t *testing.T, id ebpf.ProgramID) string {
	t.Helper()
	p, err := ebpf.NewProgramFromID(id)
	if errors.Is(err, os.ErrNotExist) {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close() }()
	info, err := p.Info()
	if err != nil {
		t.Fatal(err)
	}
	return info.Name
}
