package cli_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"netdelta/agent/program"
	"netdelta/cli"
	"netdelta/internal/leak"
	"netdelta/internal/machine"
	"netdelta/internal/require"
	"netdelta/workload/catalogue"
)

// tested is the variable that names the program under test. A program that is there already can be tested by setting it.
const tested = "NETDELTA_TESTED"

// keptFolder is the variable that names the folder of what tests share. It is removed when all have ended.
const keptFolder = "NETDELTA_TESTS_KEPT"

// programName is the file name of the program under test.
const programName = "netdelta"

// The program under test is this test's binary by another name, so that nothing else has to be linked. All of its copies have one of
// the names by which it ships, also those that it sends into guests and containers.
func TestMain(m *testing.M) {
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0] // without /proc, which is for the program to say
	}
	switch filepath.Base(self) {
	case programName:
		os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	case machine.AgentName:
		os.Exit(program.Main(os.Args[1:], catalogue.Workloads()))
	}
	os.Exit(withProgram(m, self))
}

func withProgram(m *testing.M, self string) int {
	dir, err := os.MkdirTemp("", "netdelta-cli-test-*")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if signal.Ignored(syscall.SIGHUP) {
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP) // as nohup has it: programs that are started here shall not inherit that
	}
	// Other users run it too.
	err = errors.Join(os.Chmod(dir, 0o755), os.Setenv(keptFolder, dir))
	if os.Getenv(tested) == "" {
		// What the program remembers is not remembered beyond the tests.
		err = errors.Join(err, makeProgram(dir, self), os.Setenv(tested, filepath.Join(dir, programName)),
			os.Setenv("XDG_STATE_HOME", filepath.Join(dir, "state")), os.Setenv(machine.ProcessorsVariable, dir))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return leak.Main(m)
}

// makeProgram puts the program under test into a folder, and next to it the one that it sends. They are built where the test's binary can't
// stand for them: where it is linked dynamically, which no image takes, and for guests, whose memory is measured out for the small one.
func makeProgram(dir, self string) error {
	if machine.CheckStatic(self) != nil || os.Getenv(require.GuestsVariable) != "" {
		build := exec.Command("go", "build", "-o", dir+"/", "netdelta/cmd/...")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("build the program under test: %w\n%s", err, out)
		}
		return nil
	}
	for _, name := range []string{programName, machine.AgentName} {
		path := filepath.Join(dir, name)
		if os.Link(self, path) == nil {
			continue
		}
		// The folder is on another file system.
		data, err := os.ReadFile(self)
		if err != nil {
			return err
		}
		if err := os.WriteFile(path, data, 0o755); err != nil {
			return err
		}
	}
	return nil
}
