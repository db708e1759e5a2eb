package result

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// writeJSON replaces the file at path by v as indented JSON.
func writeJSON(path string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return writeFile(path, append(data, '\n'))
}

// writeFile replaces the file at path so that at any moment, and after a crash, it is there whole: the old one or the new.
func writeFile(path string, data []byte) error {
	temporary, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return explain("write "+path, err)
	}
	if err := fill(temporary, data); err != nil {
		return errors.Join(explain("write "+path, err), os.Remove(temporary.Name()))
	}
	if err := os.Rename(temporary.Name(), path); err != nil {
		return errors.Join(explain("write "+path, err), os.Remove(temporary.Name()))
	}
	return syncDir(filepath.Dir(path))
}

// fill writes a file, brings it to disk and closes it.
func fill(file *os.File, data []byte) error {
	_, err := file.Write(data)
	if err == nil {
		err = file.Chmod(0o644)
	}
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

// syncDir makes the names in a directory durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return explain("sync the folder", err)
	}
	err = d.Sync()
	if errors.Is(err, unix.EINVAL) {
		err = nil // a file system whose directories can't be synced
	}
	if err := errors.Join(err, d.Close()); err != nil {
		return explain("sync the folder "+dir, err)
	}
	return nil
}

// explain adds to a file system's error what was being done and what to do about it.
func explain(doing string, err error) error {
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
			return fmt.Errorf("%s: %w; %s", doing, err, known.fix)
		}
	}
	return fmt.Errorf("%s: %w", doing, err)
}
