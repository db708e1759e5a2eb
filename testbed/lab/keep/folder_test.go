package keep

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"
)

func TestCheckName(t *testing.T) {
	for _, good := range []string{"a", "default", "Lab_2", "7", "x-", strings.Repeat("x", MaxName)} {
		if err := CheckName(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{
		"", ".", "..", "../x", "a/b", "/etc/passwd", "a.b", "-x", "--all", "a b", "a\nb", "a\x00b", "\x1b[2J", "é", strings.Repeat("x", MaxName+1),
	} {
		if err := CheckName(bad); err == nil {
			t.Errorf("%q is taken for a name", bad)
		}
	}
}

func FuzzCheckName(f *testing.F) {
	for _, s := range []string{"lab", "../x", "a\x1b", "-"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		err := CheckName(name)
		if err != nil && strings.ContainsFunc(err.Error(), unicode.IsControl) {
			t.Errorf("the error about %q holds what a terminal obeys: %q", name, err)
		}
		// A name that is taken is the name of a file in the folder, and nothing else.
		if err == nil && (filepath.Base(name) != name || !filepath.IsLocal(name+lockEnd) || filepath.Clean(name) != name || name == ".") {
			t.Errorf("%q is taken for a name", name)
		}
	})
}

func folder(t *testing.T) *Folder {
	t.Helper()
	path := filepath.Join(t.TempDir(), "labs")
	f, err := OpenFolder(func(name string) string { return map[string]string{Variable: path}[name] })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("looking for labs has made a folder: %v", err)
	}
	if err := f.make(); err != nil {
		t.Fatal(err)
	}
	return f
}

// Where the folder is depends on who asks, and a folder that others could have filled is refused.
func TestOpenFolder(t *testing.T) {
	runtime := t.TempDir()
	getenv := func(name string) string { return map[string]string{"XDG_RUNTIME_DIR": runtime}[name] }
	f, err := OpenFolder(getenv)
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(runtime, "netdelta"); os.Geteuid() != 0 && f.path != want {
		t.Errorf("the folder is %s, want %s", f.path, want)
	}
	if os.Geteuid() == 0 && strings.HasPrefix(f.path, runtime) {
		t.Errorf("root's folder %s depends on the way of the login", f.path)
	}
	for name, spoil := range map[string]func(path string) error{
		"open to others": func(path string) error { return errors.Join(os.Mkdir(path, 0o700), os.Chmod(path, 0o755)) },
		"a file":         func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"a link":         func(path string) error { return os.Symlink(runtime, path) },
	} {
		path := filepath.Join(t.TempDir(), "labs")
		if err := spoil(path); err != nil {
			t.Fatal(err)
		}
		_, err := OpenFolder(func(string) string { return path })
		if err == nil || !strings.Contains(err.Error(), Variable) {
			t.Errorf("%s: the error is %v, want one that names %s", name, err, Variable)
		}
	}
}

// A lock has one holder, also while others remove the file that it is on.
func TestLock(t *testing.T) {
	f := folder(t)
	var held sync.Mutex
	var group sync.WaitGroup
	const wanted = 150
	rounds, deadline := 0, time.Now().Add(time.Minute)
	round := func() (more bool) {
		lock, err := f.lock("one")
		if errors.Is(err, errTaken) {
			return time.Now().Before(deadline)
		}
		if err != nil {
			t.Error(err)
			return false
		}
		if held.TryLock() {
			rounds++
			more = rounds < wanted
			time.Sleep(20 * time.Microsecond) // for others to open the file that is about to go
			held.Unlock()
		} else {
			t.Error("the lock has two holders")
		}
		if err := f.forget("one", lock); err != nil {
			t.Error(err)
		}
		return more
	}
	for range 4 {
		group.Go(func() {
			for round() {
			}
		})
	}
	group.Wait()
	if rounds < wanted {
		t.Errorf("the lock was had %d times, want %d", rounds, wanted)
	}
	if names, err := f.Names(); err != nil || len(names) != 0 {
		t.Errorf("after all there is %v, %v", names, err)
	}
}

// What dead keepers left goes, what lives stays, and what is no lab's is not touched.
func TestClean(t *testing.T) {
	f := folder(t)
	for _, name := range []string{"dead.lock", "dead.sock", "dead.log", "other.txt", "..lock", "live.sock"} {
		if err := os.WriteFile(filepath.Join(f.path, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	live, err := f.lock("live")
	if err != nil {
		t.Fatal(err)
	}
	defer live.Close()
	removed, err := f.Clean()
	if err != nil || !slices.Equal(removed, []string{"dead"}) {
		t.Errorf("removed %v, %v; want the dead one", removed, err)
	}
	entries, err := os.ReadDir(f.path)
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if want := []string{"..lock", "live.lock", "live.sock", "other.txt"}; !slices.Equal(left, want) {
		t.Errorf("left are %v, want %v", left, want)
	}
}

func TestChoose(t *testing.T) {
	f := folder(t)
	choose := func(name, want, says string) {
		t.Helper()
		got, err := f.Choose(name)
		var unknown *UnknownError
		if got != want || (err != nil) != (says != "") || err != nil && (!errors.As(err, &unknown) || !strings.Contains(err.Error(), says)) {
			t.Errorf("%q: %q, %v; want %q, %q", name, got, err, want, says)
		}
	}
	choose("", "", "there is no lab")
	choose("x", "", "there is no lab")
	for i, name := range []string{"first", "second"} {
		if err := os.WriteFile(f.file(name, lockEnd), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			choose("", "first", "")
		}
	}
	choose("second", "second", "")
	choose("", "", "choose one with --name: first, second")
	choose("secnd", "", `did you mean "second"?`)
	choose("\x1b[2J", "", "there are first, second")
}
