package result

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// fill writes a file, brings it to disk and closes it.
func fill(file *os.File, mode fs.FileMode, write func(io.Writer) error) error {
	buffer := bufio.NewWriter(file)
	err := write(buffer)
	if err == nil {
		err = buffer.Flush()
	}
	if err == nil {
		err = file.Chmod(mode)
	}
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

// syncParent makes the name of a folder durable.
func syncParent(dir string) error {
	parent, err := OpenFiles(filepath.Dir(filepath.Clean(dir)))
	if err != nil {
		return fmt.Errorf("sync the folder of the run folder: %w", err)
	}
	return errors.Join(parent.sync(), parent.Close())
}

// explain adds to a file system's error what to do about it.
func explain(err error) error {
	for _, known := range []struct {
		cause error
		fix   string
	}{
		{unix.ENOSPC, "free some space there and go on with --resume, or choose another folder with --out"},
		{unix.EDQUOT, "free some of your quota there and go on with --resume, or choose another folder with --out"},
		{unix.EFBIG, "raise the file size limit (ulimit -f) and go on with --resume"},
		{unix.EROFS, "choose a folder on a writable file system with --out"},
		{fs.ErrPermission, "choose a folder that you may write with --out, or change its permissions"},
		{unix.ENOTDIR, "choose a folder whose parents are folders with --out"},
	} {
		if errors.Is(err, known.cause) {
			return fmt.Errorf("%w; %s", err, known.fix)
		}
	}
	return err
}
