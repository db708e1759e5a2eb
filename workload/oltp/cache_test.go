package oltp

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

// plantFile makes a seed of one file.
func plantFile(r *os.Root) error {
	return r.WriteFile("file", []byte("seed"), 0o644)
}

func nothing(*os.Root) error { return nil }

func TestCache(t *testing.T) {
	c := cache{t.TempDir()}
	var made atomic.Int32
	build := func(r *os.Root) error {
		made.Add(1)
		time.Sleep(20 * time.Millisecond)
		return plantFile(r)
	}
	read := func(r *os.Root) error {
		if text, err := r.ReadFile("file"); err != nil || string(text) != "seed" {
			return errors.Join(errors.New("it is not the seed"), err)
		}
		return nil
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if err := c.use(t.Context(), "a", build, read); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if made.Load() != 1 {
		t.Errorf("eight at once made it %d times", made.Load())
	}
	if err := os.Truncate(filepath.Join(c.folder, "a", "file"), 2); err != nil {
		t.Fatal(err)
	}
	if err := c.use(t.Context(), "a", build, read); err != nil || made.Load() != 2 {
		t.Errorf("a damaged one: made %d times, %v", made.Load(), err)
	}
}

func TestCacheIsBounded(t *testing.T) {
	c := cache{t.TempDir()}
	if err := os.Mkdir(filepath.Join(c.folder, building+"killed"), 0o755); err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"a", "b", "c", "d"} {
		if err := c.use(t.Context(), name, plantFile, nothing); err != nil {
			t.Fatal(err)
		}
		at := time.Unix(int64(1000+i), 0)
		if err := os.Chtimes(filepath.Join(c.folder, name), at, at); err != nil {
			t.Fatal(err)
		}
	}
	failed := errors.New("no such luck")
	if err := c.use(t.Context(), "e", func(*os.Root) error { return failed }, nothing); !errors.Is(err, failed) {
		t.Errorf("a seed that fails: %v", err)
	}
	entries, err := os.ReadDir(c.folder)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if want := []string{"d", "lock"}; !slices.Equal(names, want) {
		t.Errorf("the cache has %v, want %v", names, want)
	}
	held, err := c.lock(t.Context(), unix.LOCK_EX)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = held.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := c.use(ctx, "d", plantFile, nothing); !errors.Is(err, context.DeadlineExceeded) {
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
	if err := copyAll(os.DirFS(from), to, transient); err != nil {
		t.Fatal(err)
	}
	if copied, err := to.ReadFile("a"); err != nil || !bytes.Equal(copied, text) {
		t.Errorf("%d of %d bytes are copied, or others, %v", len(copied), len(text), err)
	}
	if _, err := to.Stat("galera.cache"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what is made anew was copied: %v", err)
	}
	var s unix.Stat_t
	if err := unix.Stat(filepath.Join(folder, "a"), &s); err != nil || s.Blocks*512 > 1<<18 {
		t.Errorf("it takes %d bytes of the disk, %v", s.Blocks*512, err)
	}
}
