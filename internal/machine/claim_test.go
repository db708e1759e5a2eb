package machine_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"netdelta/internal/machine"
	"netdelta/internal/require"
)

// claimed has another program claim a processor by its folder and keep a run folder's journal open, until the test ends.
func claimed(t *testing.T, lock, journal string) (pid int) {
	t.Helper()
	require.Tool(t, "flock")
	cmd := exec.CommandContext(t.Context(), "flock", "--nonblock", "--no-fork", lock, "sh", "-c", `exec 9>"$0"; echo; read _`, journal)
	in, out := require.Pipes(t, cmd)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close() // its end
		_ = cmd.Wait() // it reads to the end of nothing
	})
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	return cmd.Process.Pid
}

// Two programs don't claim the same processor. The second is told who has it, and has none of the others then.
func TestClaims(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(machine.ProcessorsVariable, dir)
	first, err := machine.ClaimCPUs([]int{3, 1})
	if err != nil {
		t.Fatal(err)
	}
	var busy *machine.BusyError
	if _, err := machine.ClaimCPUs([]int{0, 1}); !errors.As(err, &busy) || busy.CPU != 1 || busy.PID != os.Getpid() {
		t.Errorf("processor 1 is claimed, and the error is %v", err)
	}
	second, err := machine.ClaimCPUs([]int{0, 2})
	if err != nil {
		t.Fatalf("processor 0 was not given back, or 2 not left alone: %v", err)
	}
	if err := errors.Join(first.Release(), first.Release(), second.Release(), (*machine.Claim)(nil).Release()); err != nil {
		t.Error(err)
	}

	journal := filepath.Join(dir, "run", "trials.jsonl")
	if err := os.Mkdir(filepath.Dir(journal), 0o700); err != nil {
		t.Fatal(err)
	}
	pid := claimed(t, filepath.Join(dir, "cpu3"), journal)
	_, err = machine.ClaimCPUs([]int{3})
	if !errors.As(err, &busy) || busy.PID != pid || !strings.Contains(err.Error(), "run folder "+filepath.Dir(journal)) {
		t.Errorf("process %d writes %s, and the error is %v", pid, journal, err)
	}
}

// The kernel's own folders of processors can be locked, by users without rights too.
func TestClaimOfTheKernels(t *testing.T) {
	t.Setenv(machine.ProcessorsVariable, "")
	cpus, err := machine.AllowedCPUs()
	if err != nil {
		t.Fatal(err)
	}
	c, err := machine.ClaimCPUs(cpus[:1])
	var busy *machine.BusyError
	if errors.As(err, &busy) && busy.PID != 0 {
		return // another run of this machine has it: the lock works
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Release(); err != nil {
		t.Error(err)
	}
}
