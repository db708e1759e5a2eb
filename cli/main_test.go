package cli_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"netdelta/internal/leak"
	"netdelta/internal/machine"
)

// tested is the variable that names the program under test. A program that is there already can be tested by setting it.
const tested = "NETDELTA_TESTED"

// The tests run the program as it ships, built once.
func TestMain(m *testing.M) { os.Exit(withProgram(m)) }

func withProgram(m *testing.M) int {
	if os.Getenv(tested) != "" {
		return leak.Main(m)
	}
	dir, err := os.MkdirTemp("", "netdelta-cli-test-*")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	// Other users run it too.
	if err := os.Chmod(dir, 0o755); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	path := filepath.Join(dir, "netdelta")
	build := exec.Command("go", "build", "-o", dir+"/", "netdelta/cmd/...")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building the program under test: %v\n%s", err, out)
		return 1
	}
	// What the program remembers is not remembered beyond the tests.
	if err := errors.Join(os.Setenv(tested, path), os.Setenv("XDG_STATE_HOME", filepath.Join(dir, "state")),
		os.Setenv(machine.ProcessorsVariable, dir)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return leak.Main(m)
}
