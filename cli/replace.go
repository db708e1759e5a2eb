package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// replaceFile replaces the file at path atomically: a reader sees the whole old file or the whole new one, also after a crash or on
// a full disk. If path is not a regular file, such as a pipe, it is written to directly.
func replaceFile(path string, write func(io.Writer) error) error {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target // a link stays one
	}
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return withStatus(exitUsage, fmt.Errorf("write %s: it is a folder; name a file in it with --out", path))
	case err == nil && !info.Mode().IsRegular():
		return explainWrite(path, writeThrough(path, write))
	}
	temporary, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return explainWrite(path, err)
	}
	err = fill(temporary, write)
	if err == nil {
		err = os.Rename(temporary.Name(), path)
	}
	if err != nil {
		return errors.Join(explainWrite(path, err), os.Remove(temporary.Name()))
	}
	return nil
}

// fill writes a file, brings it to disk and closes it.
func fill(file *os.File, write func(io.Writer) error) error {
	buffer := bufio.NewWriter(file)
	err := write(buffer)
	if err == nil {
		err = buffer.Flush()
	}
	if err == nil {
		err = file.Chmod(0o644)
	}
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

// writeThrough writes to what is already there.
func writeThrough(path string, write func(io.Writer) error) error {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(write(file), file.Close())
}

// explainWrite adds to an error what was being done and what to do about it.
func explainWrite(path string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("write %s: %w; free some space there or choose another place with --out", path, err)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return fmt.Errorf("write %s: %w; choose a place that you may write with --out", path, err)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("write %s: %w; make its folder first or choose another place with --out", path, err)
	}
	return fmt.Errorf("write %s: %w", path, err)
}
