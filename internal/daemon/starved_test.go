package daemon

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"netdelta/unit"
)

// A program that is killed as the kernel kills for want of memory is said to be.
func TestStarved(t *testing.T) {
	h, err := Open(unit.MiB)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}()
	h.groups = t.TempDir()
	for kills, wanting := range map[string]bool{"0": false, "1": true} {
		d, err := h.Start(Spec{Path: "sleep", Args: []string{"100"}})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(h.groups, "memory.events"), []byte("oom_kill "+kills+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := d.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		<-d.Ended()
		if got := d.Err(); strings.Contains(got.Error(), "killed for want of memory") != wanting {
			t.Errorf("with %s killed: %v", kills, got)
		}
		if err := os.RemoveAll(filepath.Join(h.groups, "memory.events")); err != nil {
			t.Fatal(err)
		}
	}
}
