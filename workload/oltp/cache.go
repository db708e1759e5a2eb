package oltp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// form is the version of how seeds are made: another form is another seed.
const form = 2

// The names in the folder of seeds.
const (
	building     = "building-" // begins the names of those that are not ready
	contentsFile = "contents"  // of a seed: its files with their sizes, written last
)

// kept is how many seeds are kept: this one, and that of the version before it.
const kept = 2

// cache is the folder in which seeds are kept from run to run, some 70 MB each. Several programs may use it at once.
type cache struct{ folder string }

// openCache finds the folder in the user's cache.
func openCache() (cache, error) {
	user, err := os.UserCacheDir()
	if err != nil {
		return cache{}, fmt.Errorf("find a place for the database that all nodes begin with: %w; set XDG_CACHE_HOME", err)
	}
	c := cache{filepath.Join(user, "netdelta", "oltp")}
	if err := os.MkdirAll(c.folder, 0o755); err != nil {
		return cache{}, fmt.Errorf("make a place for the database that all nodes begin with: %w; set XDG_CACHE_HOME", err)
	}
	return c, nil
}

// identify is the name of the seed that a version of the database makes.
func identify(version string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "form %d\n%s\n%d tables, %d rows\n%s%s", form, version, tables, rows, base(usual), alone()))
	return hex.EncodeToString(sum[:8])
}

// lock waits until nobody holds the cache in a way that excludes this one: LOCK_SH for reading, LOCK_EX for changing it.
func (c cache) lock(ctx context.Context, how int) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(c.folder, "lock"), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", c.folder, err)
	}
	for {
		err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", c.folder, err), f.Close())
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("wait for another that makes a seed in %s: %w", c.folder, context.Cause(ctx)), f.Close())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// use calls f with the seed of a name, after make has made it in an empty folder where it is missing or damaged. Nobody removes it
// meanwhile.
func (c cache) use(ctx context.Context, name string, build func(*os.Root) error, f func(*os.Root) error) (err error) {
	reading, err := c.lock(ctx, unix.LOCK_SH)
	if err != nil {
		return err
	}
	if whole(filepath.Join(c.folder, name)) != nil {
		if err := reading.Close(); err != nil {
			return err
		}
		if err := c.add(ctx, name, build); err != nil {
			return err
		}
		if reading, err = c.lock(ctx, unix.LOCK_SH); err != nil {
			return err
		}
	}
	defer func() { err = errors.Join(err, reading.Close()) }()
	// By its descriptor it is found even where a home hides the folders above it.
	root, err := os.OpenRoot(filepath.Join(c.folder, name))
	if err != nil {
		return err
	}
	return errors.Join(f(root), root.Close())
}

// add builds a seed unless somebody else was faster, and removes old ones.
func (c cache) add(ctx context.Context, name string, build func(*os.Root) error) (err error) {
	writing, err := c.lock(ctx, unix.LOCK_EX)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, writing.Close()) }()
	final := filepath.Join(c.folder, name)
	if whole(final) == nil {
		return nil
	}
	if err := c.sweep(final); err != nil {
		return err
	}
	next := filepath.Join(c.folder, building+name)
	if err := os.Mkdir(next, 0o755); err != nil {
		return err
	}
	if err := c.fill(next, build); err != nil {
		return errors.Join(err, os.RemoveAll(next))
	}
	return os.Rename(next, final)
}

// fill builds a seed in an empty folder, and sees that all of it is on the disk.
func (c cache) fill(folder string, build func(*os.Root) error) error {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	if err := errors.Join(build(root), root.Close()); err != nil {
		return err
	}
	list, err := contents(folder)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, contentsFile), []byte(list), 0o644); err != nil {
		return err
	}
	f, err := os.Open(folder)
	if err != nil {
		return err
	}
	err = unix.Syncfs(int(f.Fd()))
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write %s to the disk: %w", folder, err)
	}
	return nil
}

// sweep removes what is in the way of a new seed: a damaged one of its name, what builds that were killed have left, and all
// but the newest of the others.
func (c cache) sweep(final string) error {
	entries, err := os.ReadDir(c.folder)
	if err != nil {
		return err
	}
	type seed struct {
		path string
		made time.Time
	}
	var others []seed
	for _, e := range entries {
		path := filepath.Join(c.folder, e.Name())
		switch {
		case !e.IsDir():
		case path == final || strings.HasPrefix(e.Name(), building):
			err = errors.Join(err, os.RemoveAll(path))
		default:
			info, errInfo := e.Info()
			if errInfo != nil {
				return errors.Join(err, errInfo)
			}
			others = append(others, seed{path, info.ModTime()})
		}
	}
	slices.SortFunc(others, func(a, b seed) int { return b.made.Compare(a.made) })
	for _, old := range others[min(len(others), kept-1):] {
		err = errors.Join(err, os.RemoveAll(old.path))
	}
	return err
}

// contents lists the files below a folder, a line each.
func contents(folder string) (string, error) {
	var list strings.Builder
	err := filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() || path == filepath.Join(folder, contentsFile) {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(folder, path)
		fmt.Fprintf(&list, "%d %s\n", info.Size(), name)
		return err
	})
	return list.String(), err
}

// whole returns nil for a seed that has all files that it was made of.
func whole(folder string) error {
	was, err := os.ReadFile(filepath.Join(folder, contentsFile))
	if err != nil {
		return err
	}
	is, err := contents(folder)
	if err == nil && is != string(was) {
		err = fmt.Errorf("%s is damaged", folder)
	}
	return err
}
