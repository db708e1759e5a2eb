package galera

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// build writes an archive of one file.
func build(t *testing.T) func(*os.File) error {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "file"), []byte("template"), 0o644); err != nil {
		t.Fatal(err)
	}
	return func(to *os.File) error { return pack(folder, to) }
}

// use opens a template and reads it.
func use(ctx context.Context, t *testing.T, c cache, name string, build func(*os.File) error) error {
	f, err := c.open(ctx, name, build)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	to, err := os.OpenRoot(t.TempDir())
	if err != nil {
		return err
	}
	defer func() { _ = to.Close() }()
	if err := unpack(f, to); err != nil {
		return err
	}
	if text, err := to.ReadFile("file"); err != nil || string(text) != "template" {
		return errors.Join(errors.New("it is not the template"), err)
	}
	return nil
}

func TestCache(t *testing.T) {
	c := cache{t.TempDir()}
	var made atomic.Int32
	write := build(t)
	slow := func(to *os.File) error {
		made.Add(1)
		time.Sleep(20 * time.Millisecond)
		return write(to)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if err := use(t.Context(), t, c, "a", slow); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if made.Load() != 1 {
		t.Errorf("eight at once made it %d times", made.Load())
	}
	for i, size := range []int64{2, 512, 1024} {
		if err := os.Truncate(filepath.Join(c.folder, "a"+ready), size); err != nil {
			t.Fatal(err)
		}
		if err := use(t.Context(), t, c, "a", slow); err != nil || made.Load() != int32(i+2) {
			t.Errorf("a damaged one of %d bytes: made %d times, %v", size, made.Load(), err)
		}
	}
}

func TestCacheIsBounded(t *testing.T) {
	c := cache{t.TempDir()}
	if err := os.WriteFile(filepath.Join(c.folder, "killed"+ready+building), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"a", "b", "c", "d"} {
		if err := use(t.Context(), t, c, name, build(t)); err != nil {
			t.Fatal(err)
		}
		at := time.Unix(int64(1000+i), 0)
		if err := os.Chtimes(filepath.Join(c.folder, name+ready), at, at); err != nil {
			t.Fatal(err)
		}
	}
	failed := errors.New("no such luck")
	if err := use(t.Context(), t, c, "e", func(*os.File) error { return failed }); !errors.Is(err, failed) {
		t.Errorf("a template that fails: %v", err)
	}
	entries, err := os.ReadDir(c.folder)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if want := []string{"d" + ready, "lock"}; !slices.Equal(names, want) {
		t.Errorf("the cache has %v, want %v", names, want)
	}
	held, err := c.lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = held() }()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := use(ctx, t, c, "d", nil); err != nil {
		t.Errorf("one that is there, while another makes one: %v", err)
	}
	if err := use(ctx, t, c, "f", nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("while another makes one: %v", err)
	}
}

func TestCopyLeavesHoles(t *testing.T) {
	from, folder := t.TempDir(), t.TempDir()
	text := slices.Concat(make([]byte, 1<<20), []byte("in the middle"), make([]byte, 1<<20+1))
	for _, name := range []string{"a", "galera.cache"} {
		if err := os.WriteFile(filepath.Join(from, name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	to, err := os.OpenRoot(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = to.Close() }()
	f, err := os.Create(filepath.Join(t.TempDir(), "archive"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if err := pack(from, f); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Seek(0, 0); err != nil {
		t.Fatal(err)
	}
	if err := unpack(f, to); err != nil {
		t.Fatal(err)
	}
	if copied, err := to.ReadFile("a"); err != nil || !bytes.Equal(copied, text) {
		t.Errorf("%d of %d bytes are copied, or others, %v", len(copied), len(text), err)
	}
	if _, err := to.Stat("galera.cache"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what is made anew was copied: %v", err)
	}
	for _, name := range []string{filepath.Join(folder, "a"), f.Name()} {
		var s unix.Stat_t
		if err := unix.Stat(name, &s); err != nil || s.Blocks*512 > 1<<18 {
			t.Errorf("%s takes %d bytes of the disk, %v", name, s.Blocks*512, err)
		}
	}
}
