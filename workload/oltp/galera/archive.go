package galera

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"netdelta/unit"
)

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

func zeros(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}
