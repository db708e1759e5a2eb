package cli_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"netdelta/internal/machine"
	"netdelta/internal/require"
)

// Each script is a conversation with the program. Those in the folder lab need the right to make namespaces.
func TestScripts(t *testing.T) { scripts(t, "script") }

func TestLabScripts(t *testing.T) {
	require.Namespaces(t)
	scripts(t, "lab")
}

func scripts(t *testing.T, folder string) {
	before := host(t)
	t.Cleanup(func() {
		nothingRuns(t)
		untouched(t, before)
	})
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", folder),
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", filepath.Dir(os.Getenv(tested))+":"+env.Getenv("PATH"))
			env.Setenv("PROGRAM", os.Getenv(tested))
			env.Setenv("XDG_STATE_HOME", filepath.Join(env.WorkDir, ".state"))
			env.Setenv(machine.ProcessorsVariable, os.Getenv(machine.ProcessorsVariable))
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"status":    status,
			"unwritten": unwritten,
			"plain":     plain,
		},
	})
}

// status STATUS ARGUMENTS... calls the program and fails unless it ends with the status.
func status(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status STATUS ARGUMENTS...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	var exit *exec.ExitError
	switch err := ts.Exec("netdelta", args[1:]...); {
	case err == nil:
	case errors.As(err, &exit):
		got = exit.ExitCode()
	default:
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("netdelta %s: exit status %d, want %d", strings.Join(args[1:], " "), got, want)
	}
}

// unwritten fails when the program has written a run folder below the script's folder.
func unwritten(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: unwritten")
	}
	ts.Check(filepath.WalkDir(ts.Getenv("WORK"), func(path string, d os.DirEntry, err error) error {
		if err == nil && (d.Name() == "runs" || d.Name() == "trials.jsonl") {
			ts.Fatalf("the program has written %s", path)
		}
		return err
	}))
}

// plain stdout|stderr fails when what was printed has bytes that a terminal obeys.
func plain(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: plain stdout|stderr")
	}
	if text := ts.ReadFile(args[0]); obeyed(text) {
		ts.Fatalf("%s has bytes that a terminal obeys: %q", args[0], text)
	}
}

// obeyed tells text that does more to a terminal than to print.
func obeyed(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 })
}
