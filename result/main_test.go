package result

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
)

// childEnv names the part that a re-executed test binary plays instead of running tests.
const childEnv = "RESULT_TEST_CHILD"

func TestMain(m *testing.M) {
	children := map[string]func(dir string) error{
		"writer":       writeForever,
		"full-disk":    fillDisk,
		"read-only":    writeReadOnly,
		"unprivileged": writeUnprivileged,
	}
	if part := os.Getenv(childEnv); part != "" {
		child, ok := children[part]
		if !ok {
			fmt.Fprintln(os.Stderr, "no such part:", part)
			os.Exit(2)
		}
		if err := child(os.Args[1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child is a command that plays a part in a process of its own.
func child(t *testing.T, part, dir string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, dir)
	cmd.Env = append(os.Environ(), childEnv+"="+part)
	return cmd
}
