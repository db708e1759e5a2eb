package property

import (
	"os"
	"os/exec"
	"regexp"
	"testing"

	"pgregory.net/rapid"
)

// insideVariable is set where TestFails is to fail.
const insideVariable = "NETDELTA_TEST_FAILING_PROPERTY"

// TestFails is what TestFailureLeavesNothing runs: its property does not hold for some input.
func TestFails(t *testing.T) {
	if os.Getenv(insideVariable) == "" {
		return
	}
	Check(t, func(t *rapid.T) {
		if n := rapid.IntRange(0, 1000).Draw(t, "n"); n >= 10 {
			t.Errorf("%d is too much", n)
		}
	})
}

// seed matches what a failed test prints for a person who wants to see it fail again.
var seed = regexp.MustCompile(`-rapid\.seed=[0-9]+`)

// TestFailureLeavesNothing: a failed check writes no file, and prints its input and a seed with which the first input fails.
func TestFailureLeavesNothing(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	fail := func(arguments ...string) []byte {
		cmd := exec.CommandContext(t.Context(), program, append([]string{"-test.run=^TestFails$"}, arguments...)...)
		cmd.Dir, cmd.Env = folder, append(os.Environ(), insideVariable+"=1")
		out, err := cmd.CombinedOutput()
		if err == nil || !regexp.MustCompile(`\[rapid\] draw n: 10\n.* 10 is too much\n`).Match(out) {
			t.Fatalf("want a failure with its input, have %v:\n%s", err, out)
		}
		return out
	}
	first := fail()
	again := seed.Find(first)
	if again == nil {
		t.Fatalf("no seed is printed:\n%s", first)
	}
	if out := fail(string(again)); !regexp.MustCompile(`failed after 0 tests`).Match(out) {
		t.Errorf("with %s the first input does not fail:\n%s", again, out)
	}
	left, err := os.ReadDir(folder)
	if err != nil || len(left) > 0 {
		t.Errorf("the failure left %v (%v)", left, err)
	}
}
