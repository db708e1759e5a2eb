package plugin

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFind(t *testing.T) {
	one, two := t.TempDir(), t.TempDir()
	for file, mode := range map[string]os.FileMode{filepath.Join(one, "a"): 0o644, filepath.Join(two, "a"): 0o755, filepath.Join(one, "b"): 0o755} {
		if err := os.WriteFile(file, nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv(Variable, one+":"+two)
	if got, want := Find("a", Path()), filepath.Join(two, "a"); got != want {
		t.Errorf("a is at %q, want %q: the first one can't be run", got, want)
	}
	if got, want := Find("b", Path()), filepath.Join(one, "b"); got != want {
		t.Errorf("b is at %q, want %q", got, want)
	}
	if got := Find("c", Path()); got != "" {
		t.Errorf("c is at %q", got)
	}
	t.Setenv(Variable, "")
	if len(Path()) < 3 {
		t.Errorf("without the variable plugins are looked for in %q", Path())
	}
}

// A plugin in a folder that it could not see from inside is refused beforehand.
func TestHiddenPlugin(t *testing.T) {
	var f folders
	for file, want := range map[string]string{
		"/run/plugins/bridge": runFolder, "/running/bridge": "", "/usr/lib/cni/bridge": "", f.libTarget() + "/x/bridge": f.libTarget(),
	} {
		if got := f.hides(file); got != want {
			t.Errorf("%s is hidden by %q, want %q", file, got, want)
		}
	}
}

func TestLimited(t *testing.T) {
	var l limited
	long := strings.Repeat("x", saidAtMost/2+1)
	for range 3 {
		if n, err := l.Write([]byte(long)); n != len(long) || err != nil {
			t.Fatalf("wrote %d: %v", n, err)
		}
	}
	if l.Len() != saidAtMost {
		t.Errorf("kept %d bytes", l.Len())
	}
	if s := l.shown(); len(s) > shownAtMost+10 {
		t.Errorf("shows %d bytes", len(s))
	}
	var none limited
	if none.shown() != "" {
		t.Errorf("shows %q of nothing", none.shown())
	}
	_, _ = none.Write([]byte("\x1b[2Jgone"))
	if s := none.shown(); strings.ContainsRune(s, 0x1b) {
		t.Errorf("shows what a terminal obeys: %q", s)
	}
}
