package repotest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// onFreshMachine stands in for a go command that has to download modules first: it says so while it lists packages, and writes
// down what else it is asked.
const onFreshMachine = `#!/bin/sh
if [ "$1" = list ]; then
	echo "go: downloading example.com/module v1.0.0" >&2
	shift
	printf '%s\n' "$@"
else
	echo "$@" >>"$CALLS"
fi
`

// TestFreshMachine: what the go command downloads while packages are listed is not taken for packages whose tests fail.
func TestFreshMachine(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "go"), []byte(onFreshMachine), 0o700); err != nil {
		t.Fatal(err)
	}
	calls := filepath.Join(dir, "calls")
	cmd := exec.CommandContext(t.Context(), "scripts/test.sh", "netdelta/agent")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "CALLS="+calls, "NETDELTA_SUMMARY=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	asked, err := os.ReadFile(calls)
	if err != nil {
		t.Fatal(err)
	}
	if text := string(asked); !strings.Contains(text, "--events raced netdelta/agent") || strings.Contains(text, "downloading") {
		t.Errorf("the go command was asked: %s", text)
	}
}
