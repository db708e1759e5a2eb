package image

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cavaliergopher/cpio"
	"golang.org/x/sys/unix"

	"netdelta/internal/require"
	"netdelta/testbed"
)

// made is an image of small files.
func made(t *testing.T, cache string) Image {
	t.Helper()
	i := Image{Dir: filepath.Join(cache, "0123456789abcdef"), Suite: "s", Kernel: "k", QEMU: "q", Packages: []string{"a=1"}}
	for _, name := range files() {
		path := filepath.Join(i.Dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte("contents of "+name), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(i.seal(), choose(cache, i.ID())); err != nil {
		t.Fatal(err)
	}
	return i
}

// TestOpen: an image that is whole is found as it was built, and is not built again.
func TestOpen(t *testing.T) {
	o := Options{Cache: t.TempDir()}
	if _, err := Open(o); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without an image: %v", err)
	}
	want := made(t, o.Cache)
	for name, open := range map[string]func() (Image, error){
		"open":   func() (Image, error) { return Open(o) },
		"glance": func() (Image, error) { return Glance(o) },
		"build":  func() (Image, error) { return Build(t.Context(), o) },
	} {
		if got, err := open(); err != nil || got.Dir != want.Dir || got.Kernel != "k" || len(got.Files) != len(files()) {
			t.Errorf("%s: got %+v: %v", name, got, err)
		}
	}
	if dir, err := Remove(t.Context(), o); err != nil || dir != o.Cache {
		t.Errorf("remove: %s: %v", dir, err)
	}
	if _, err := os.Stat(o.Cache); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
}

// TestDamaged: whatever happened to an image, it is named, and not booted.
func TestDamaged(t *testing.T) {
	for says, damage := range map[string]func(dir string) error{
		"other contents": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, kernelFile), []byte("CONTENTS of vmlinuz"), 0o644)
		},
		"has 3 bytes":       func(dir string) error { return os.Truncate(filepath.Join(dir, Base.file()), 3) },
		"is missing":        func(dir string) error { return os.Remove(filepath.Join(dir, qemuFile)) },
		"image.json is mis": func(dir string) error { return os.Remove(filepath.Join(dir, describes)) },
		"unexpected end":    func(dir string) error { return os.Truncate(filepath.Join(dir, describes), 20) },
		"names no files":    func(dir string) error { return os.WriteFile(filepath.Join(dir, describes), []byte("{}"), 0o644) },
		"another version of netdelta": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, describes), []byte(`{"files": {"vmlinuz": {}}}`), 0o644)
		},
	} {
		o := Options{Cache: t.TempDir()}
		if err := damage(made(t, o.Cache).Dir); err != nil {
			t.Fatal(err)
		}
		_, err := Open(o)
		var damaged *DamagedError
		if !errors.As(err, &damaged) || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), "netdelta vm build") {
			t.Errorf("got %v, not one that says %q", err, says)
		}
	}
}

// TestRoot: equal files give equal archives, and what was put in comes out.
func TestRoot(t *testing.T) {
	from := t.TempDir()
	err := errors.Join(os.WriteFile(filepath.Join(from, "program"), []byte("text"), 0o750), os.Symlink("program", filepath.Join(from, "other")))
	if err != nil {
		t.Fatal(err)
	}
	archive := func() []byte {
		var out bytes.Buffer
		r := NewRoot(&out)
		err := errors.Join(r.Folder("a/b"), r.Folder("/a"), r.Text("/a/b/c", 0o644, []byte("odd")), r.Link("/l", "a/b/c"), r.Copy(from, "/t"), r.Close())
		if err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	first := archive()
	if err := os.Chtimes(filepath.Join(from, "program"), time.Unix(1, 0), time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first, archive()) {
		t.Error("equal files give archives that differ")
	}
	var got []string
	for r := cpio.NewReader(bytes.NewReader(first)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s %o %s%s", h.Name, h.Mode, h.Linkname, text))
	}
	want := []string{"a 40755 ", "a/b 40755 ", "a/b/c 100644 odd", "l 120777 a/b/c", "t 40755 ", "t/other 120777 program", "t/program 100750 text"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestClosure: each module stands before those that it needs, and what is built in is left out.
func TestClosure(t *testing.T) {
	m := &modules{all: map[string]*module{
		"top": {needs: []string{"left", "right", "builtin"}}, "left": {needs: []string{"base"}}, "right": {needs: []string{"base", "left"}}, "base": {},
	}}
	if got := m.closure("top"); !slices.Equal(got, []string{"right", "left", "base"}) {
		t.Errorf("got %v", got)
	}
	if got := moduleName("nf-conntrack.ko.xz"); got != "nf_conntrack" {
		t.Errorf("got %s", got)
	}
}

// TestIdentify: other packages are another image, in whichever order they come.
func TestIdentify(t *testing.T) {
	a, b := identify("s", []string{"a=1", "b=2"}), identify("s", []string{"b=2", "a=1"})
	if a != b || a == identify("s", []string{"a=1", "b=3"}) || a == identify("t", []string{"a=1", "b=2"}) {
		t.Error("images are mistaken for one another")
	}
}

// here skips the test on a machine that is no Debian.
func here(t *testing.T) *apt {
	t.Helper()
	a, err := newAPT(t.Context(), t.TempDir())
	var lacks *testbed.UnsupportedError
	if errors.As(err, &lacks) {
		require.Need(t, lacks.Need, false)
	}
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestMissingPackage: a package that the archive does not have is named.
func TestMissingPackage(t *testing.T) {
	a := here(t)
	if kernel, err := a.kernel(t.Context()); err != nil || !strings.HasPrefix(kernel, "linux-image-") {
		t.Errorf("the kernel is %q: %v", kernel, err)
	}
	_, err := a.closure(t.Context(), []string{"busybox-static", "netdelta-no-such-package"})
	if err == nil || !strings.Contains(err.Error(), "netdelta-no-such-package") || !strings.Contains(err.Error(), "apt-cache policy") {
		t.Errorf("got %v", err)
	}
}

// TestFull: on a disk that is full nothing is left that would be taken for an image, and the error says how much it takes.
func TestFull(t *testing.T) {
	require.Long(t)
	if dir := os.Getenv("NETDELTA_TEST_FULL"); dir != "" {
		buildFull(dir)
	}
	require.Namespaces(t)
	here(t)
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFull$")
	cmd.Env = append(os.Environ(), "NETDELTA_TEST_FULL="+t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS, Unshareflags: syscall.CLONE_NEWNS}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if !strings.Contains(string(out), "free some in") || !strings.Contains(string(out), "600 MB") {
		t.Errorf("it says %s", out)
	}
}

// buildFull builds on a small disk of its own, in a mount namespace of its own, and says what came of it.
func buildFull(dir string) {
	err := unix.Mount("tmpfs", dir, "tmpfs", 0, "mode=755,size=60m")
	if err == nil {
		_, err = Build(context.Background(), Options{Cache: dir})
	}
	fmt.Println(err)
	left, globbed := filepath.Glob(filepath.Join(dir, "*"))
	left = slices.DeleteFunc(left, func(l string) bool { return filepath.Base(l) == "apt" || filepath.Base(l) == "lock" })
	if len(left) > 0 || globbed != nil {
		fmt.Println("it left", left, globbed)
		os.Exit(1)
	}
	os.Exit(0)
}

// TestForeignCache: nothing is run, followed or removed of a folder in which others, or a damaged file, say what the image is.
func TestForeignCache(t *testing.T) {
	require.Need(t, "root, to give files to others", os.Geteuid() == 0)
	const other = 54321
	for name, c := range map[string]struct {
		change func(i Image) error
		says   string
	}{
		"of another user":    {func(i Image) error { return os.Chown(filepath.Dir(i.Dir), other, other) }, "uid 54321"},
		"an image of theirs": {func(i Image) error { return os.Chown(i.Dir, other, other) }, "uid 54321"},
		"writable by all":    {func(i Image) error { return os.Chmod(filepath.Dir(i.Dir), 0o777) }, "chmod go-w"},
		"a link": {func(i Image) error {
			return errors.Join(os.Rename(i.Dir, i.Dir+"x"), os.Symlink(i.Dir+"x", i.Dir))
		}, "is a link"},
		"the folder above": {func(i Image) error { return choose(filepath.Dir(i.Dir), "..") }, "remove it"},
		"the folder":       {func(i Image) error { return choose(filepath.Dir(i.Dir), ".") }, "remove it"},
		"nothing":          {func(i Image) error { return choose(filepath.Dir(i.Dir), "") }, "remove it"},
		"elsewhere":        {func(i Image) error { return choose(filepath.Dir(i.Dir), "../"+i.ID()) }, "remove it"},
	} {
		t.Run(name, func(t *testing.T) {
			o := Options{Cache: filepath.Join(t.TempDir(), "vm")}
			i := made(t, o.Cache)
			beside := filepath.Join(filepath.Dir(o.Cache), "beside")
			if err := errors.Join(os.WriteFile(beside, nil, 0o644), c.change(i)); err != nil {
				t.Fatal(err)
			}
			for what, open := range map[string]func() (Image, error){
				"open": func() (Image, error) { return Open(o) }, "glance": func() (Image, error) { return Glance(o) },
				"build": func() (Image, error) { return Build(t.Context(), o) },
			} {
				if _, err := open(); err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), o.Cache) {
					t.Errorf("%s: %v", what, err)
				}
			}
			for _, path := range []string{beside, filepath.Join(i.Dir, kernelFile)} {
				if _, err := os.Stat(path); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
