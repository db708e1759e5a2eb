package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"netdelta/result"
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
		return explainWrite(writeThrough(path, write))
	}
	files, err := result.OpenFiles(filepath.Dir(path))
	if err != nil {
		return explainWrite(fmt.Errorf("write %s: %w", path, err))
	}
	return errors.Join(explainWrite(files.Replace(filepath.Base(path), 0o644, write)), files.Close())
}

// writeThrough writes to what is already there.
func writeThrough(path string, write func(io.Writer) error) error {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("write %w", err)
	}
	if err := errors.Join(write(file), file.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// explainWrite adds to an error of writing a file what to do about it.
func explainWrite(err error) error {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("%w; free some space there or choose another place with --out", err)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return fmt.Errorf("%w; choose a place that you may write with --out", err)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w; make its folder first or choose another place with --out", err)
	}
	return err
}
