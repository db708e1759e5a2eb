package oltp

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"

	"golang.org/x/sys/unix"

	"netdelta/unit"
)

// copyAll copies all folders and files of from into the folder to, leaving holes where there are only zeros: half of a new
// database is room for a log. Names for which skip is true are left out.
func copyAll(from fs.FS, to *os.Root, skip func(name string) bool) error {
	return fs.WalkDir(from, ".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name == "." || skip(name):
			return nil
		case e.IsDir():
			return to.Mkdir(name, 0o755)
		case !e.Type().IsRegular():
			return nil // sockets
		}
		if err := copyFile(from, to, name); err != nil {
			if errors.Is(err, unix.ENOSPC) {
				err = fmt.Errorf("%w: free some space in %s", err, to.Name())
			}
			return fmt.Errorf("copy %s of a database: %w", name, err)
		}
		return nil
	})
}

// chunk is how much is looked at to find zeros: a page of the database.
const chunk = 16 * unit.KiB

func copyFile(from fs.FS, to *os.Root, name string) error {
	in, err := from.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // nothing was written
	out, err := to.OpenFile(path.Clean(name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	size, err := sparse(in, out)
	if err == nil {
		err = out.Truncate(size) // which makes a hole of what was skipped at the end
	}
	return errors.Join(err, out.Close())
}

// sparse copies a file without its zeros, and says how long it is.
func sparse(in io.Reader, out *os.File) (size int64, err error) {
	buffer := make([]byte, chunk)
	for {
		n, err := io.ReadFull(in, buffer)
		if n > 0 && !zeros(buffer[:n]) {
			if _, err := out.WriteAt(buffer[:n], size); err != nil {
				return size, err
			}
		}
		size += int64(n)
		switch {
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
			return size, nil
		case err != nil:
			return size, err
		}
	}
}

func zeros(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}
