package machine

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestProgramOfAnotherBuild: a program to be sent that is of another version is refused by both versions.
func TestProgramOfAnotherBuild(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module older\n\ngo 1.24\n", "main.go": "package main\n\nfunc main() {}\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, line := range []string{
		"git init -q", "git add .", "git -c user.name=test -c user.email=test@localhost -c commit.gpgsign=false commit -qm older", "go build -buildvcs=true -o older .",
	} {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", line)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", line, err, out)
		}
	}
	err := ofThisBuild(filepath.Join(dir, "older"))
	if err == nil || !strings.Contains(err.Error(), "is version "+Release+"+") || !strings.Contains(err.Error(), "this program is "+Version()) {
		t.Errorf("got %v", err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := ofThisBuild(self); err != nil {
		t.Error(err)
	}
}
