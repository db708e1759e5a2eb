package galera

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"netdelta/internal/daemon"
	"netdelta/internal/owner"
	"netdelta/unit"
)

// form is the version of how templates are made: another form is another template.
const form = 3

// The names of files in the cache end so: templates, and those that are not ready.
const (
	ready    = ".tar"
	building = ".building"
)

// kept is how many templates are kept: this one, and one more of another version.
const kept = 2

// cache is the folder in which the archives of template databases are kept from run to run, some 70 MB of the usual data each. Several programs may
// use it at once.
type cache struct{ folder string }

// openCache finds the folder in the user's cache.
func openCache() (cache, error) {
	const placed = "XDG_CACHE_HOME"
	user, err := os.UserCacheDir()
	if err != nil {
		return cache{}, fmt.Errorf("find a place for the database that all nodes begin with: %w; set %s", err, placed)
	}
	c := cache{filepath.Join(user, "netdelta", "oltp")}
	if os.Getenv(daemon.FolderVariable) == "" { // a container's files are nobody else's
		err = owner.CheckFolder(c.folder, placed)
	}
	if err != nil {
		return cache{}, fmt.Errorf("find a place for the database that all nodes begin with: %w", err)
	}
	if err := os.MkdirAll(c.folder, 0o755); err != nil {
		return cache{}, fmt.Errorf("make a place for the database that all nodes begin with: %w; set %s", err, placed)
	}
	return c, nil
}

// identify is the name of the template that a version of the database makes of data.
func identify(version string, data Data) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "form %d\n%s\n%d tables, %d rows\n%s%s", form, version, data.Tables, data.Rows, base(inFolder), alone()))
	return hex.EncodeToString(sum[:8])
}

// inFolder is where a file lies in a home that is seen where daemon.Folder is.
func inFolder(name ...string) string { return filepath.Join(daemon.Folder, filepath.Join(name...)) }

// open opens the template of a name, which build writes first where it is missing or damaged. It stays readable when another
// program removes it.
func (c cache) open(ctx context.Context, name string, build func(*os.File) error) (*os.File, error) {
	path := filepath.Join(c.folder, name+ready)
	if f, err := openWhole(path); err == nil {
		return f, nil
	}
	unlock, err := c.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = unlock() }() // nothing was written to it
	if f, err := openWhole(path); err == nil {
		return f, nil // another program was faster
	}
	if err := c.sweep(path); err != nil {
		return nil, err
	}
	next, err := os.Create(path + building)
	if err != nil {
		return nil, err
	}
	if err = errors.Join(build(next), next.Sync(), next.Close()); err != nil {
		return nil, errors.Join(err, os.Remove(path+building))
	}
	if err := os.Rename(path+building, path); err != nil {
		return nil, err
	}
	return openWhole(path)
}

// openWhole opens an archive that is whole.
func openWhole(path string) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if err = unpack(f, nil); err == nil {
		_, err = f.Seek(0, 0)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s is damaged: %w", path, err), f.Close())
	}
	return f, nil
}

// lock waits until no other program makes a template.
func (c cache) lock(ctx context.Context) (unlock func() error, err error) {
	if unlock, err = owner.Lock(ctx, filepath.Join(c.folder, "lock")); err != nil {
		err = fmt.Errorf("wait for another program that makes a database in %s: %w", c.folder, err)
	}
	return unlock, err
}

// sweep removes what is in the way of a new template: a damaged one at its path, what builds that were killed have left, and all
// but the newest of the others.
func (c cache) sweep(path string) error {
	entries, err := os.ReadDir(c.folder)
	var others []os.FileInfo
	for _, e := range entries {
		if info, errInfo := e.Info(); errInfo == nil && e.Name() != "lock" && e.Name() != filepath.Base(path) && !strings.HasSuffix(e.Name(), building) {
			others = append(others, info)
		} else if e.Name() != "lock" {
			err = errors.Join(err, os.RemoveAll(filepath.Join(c.folder, e.Name())))
		}
	}
	slices.SortFunc(others, func(a, b os.FileInfo) int { return b.ModTime().Compare(a.ModTime()) })
	for _, old := range others[min(len(others), kept-1):] {
		err = errors.Join(err, os.RemoveAll(filepath.Join(c.folder, old.Name())))
	}
	return err
}

// endMark is the name of the last entry of an archive: one without it was cut off.
const endMark = "netdelta.end"

// pack writes a folder as an archive to a file, without the files that the database makes anew when it starts, or that hold what
// a node knows of its group. These are removed from the folder.
func pack(folder string, to *os.File) error {
	for _, name := range []string{"galera.cache", "gvwstate.dat", "ibtmp1", "tc.log"} {
		if err := os.RemoveAll(filepath.Join(folder, name)); err != nil {
			return err
		}
	}
	out := &sparseFile{File: to}
	archive := tar.NewWriter(out)
	return errors.Join(archive.AddFS(os.DirFS(folder)), archive.WriteHeader(&tar.Header{Name: endMark}), archive.Close(), out.finish())
}

// unpack reads an archive, and writes its files into a folder; with nil it only makes sure that the archive is whole.
func unpack(from io.Reader, into *os.Root) error {
	for archive := tar.NewReader(from); ; {
		h, err := archive.Next()
		switch {
		case err != nil:
			return errors.Join(errors.New("the archive is not whole"), err)
		case h.Name == endMark:
			return nil
		case into == nil:
		case h.Typeflag == tar.TypeDir:
			err = into.MkdirAll(filepath.Clean(h.Name), 0o755)
		case h.Typeflag == tar.TypeReg:
			err = unpackFile(archive, into, filepath.Clean(h.Name))
		}
		if err != nil {
			return err
		}
	}
}

func unpackFile(from io.Reader, into *os.Root, name string) error {
	if err := into.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	f, err := into.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	out := &sparseFile{File: f}
	_, err = io.Copy(struct{ io.Writer }{out}, from)
	return errors.Join(err, out.finish(), f.Close())
}

// sparseFile is a file that leaves holes where only zeros are written: half of a new database is room for a log.
type sparseFile struct {
	*os.File
	size int64
}

// Write implements io.Writer.
func (f *sparseFile) Write(data []byte) (int, error) {
	const part = 4 * unit.KiB
	for at := 0; at < len(data); {
		end := min(at+int(part)-int(f.size%int64(part)), len(data))
		if !zeros(data[at:end]) {
			if _, err := f.WriteAt(data[at:end], f.size); err != nil {
				if errors.Is(err, unix.ENOSPC) {
					err = errors.Join(err, errors.New("free some space there"))
				}
				return at, err
			}
		}
		f.size += int64(end - at)
		at = end
	}
	return len(data), nil
}

// finish gives the file its length, which makes a hole of the zeros at its end.
func (f *sparseFile) finish() error { return f.Truncate(f.size) }

// zeros compares the bytes with each other, each with the one before it, which the machine does many at a time.
func zeros(b []byte) bool { return len(b) == 0 || b[0] == 0 && bytes.Equal(b[1:], b[:len(b)-1]) }
