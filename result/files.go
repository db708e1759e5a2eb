package result

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"netdelta/unit"
)

// Files are the files of a folder, each opened relative to one descriptor of the folder. Others may have put
// links, pipes or devices into it under the names that netdelta uses: none of them is ever opened, and writing a file puts a new
// one in the place of what has its name. The descriptor stays with the folder when others move or replace it.
type Files struct {
	path string
	root *os.Root
	self *os.File // the folder itself
	// reading are the journals of Stored, which stay open.
	reading []*os.File
	// private says that no file of another user is opened either.
	private bool
}

// OpenFiles opens a folder. If there is none the error matches fs.ErrNotExist.
func OpenFiles(path string) (*Files, error) {
	// With the dot, what is no folder is refused before it is opened: a pipe would be waited for.
	root, err := os.OpenRoot(path + string(filepath.Separator) + ".")
	if err != nil {
		return nil, at(path, err)
	}
	self, err := root.Open(".")
	if err != nil {
		return nil, errors.Join(at(path, err), root.Close())
	}
	return &Files{path: path, root: root, self: self}, nil
}

// OpenPrivateFiles opens a folder only if it is this user's and no other user may look or write into it. It follows no link to it, and
// opens no file in it that is another user's.
func OpenPrivateFiles(path string) (*Files, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	self := os.NewFile(uintptr(fd), path)
	info, err := self.Stat()
	if err == nil && !IsPrivate(info) {
		err = fmt.Errorf("%s must be a folder of this user that no other user can look into (mode 0700): remove it", path)
	}
	var root *os.Root
	if err == nil {
		root, err = os.OpenRoot(fmt.Sprintf("/proc/self/fd/%d", fd)) // what has its name by now may be another folder
	}
	if err != nil {
		return nil, errors.Join(err, self.Close())
	}
	return &Files{path: path, root: root, self: self, private: true}, nil
}

// IsPrivate says whether a folder is this user's and no other user may look or write into it.
func IsPrivate(info fs.FileInfo) bool {
	return info.IsDir() && OwnerOf(info) == os.Geteuid() && info.Mode().Perm()&0o077 == 0
}

// OwnerOf is the number of the user whose file it is, -1 where that is not known.
func OwnerOf(info fs.FileInfo) int {
	if stat, is := info.Sys().(*syscall.Stat_t); is {
		return int(stat.Uid)
	}
	return -1
}

// at gives an error of the file system the path that the user knows.
func at(path string, err error) error {
	if reason, is := errors.AsType[*fs.PathError](err); is {
		return &fs.PathError{Op: "open", Path: path, Err: reason.Err}
	}
	return err
}

// Close gives the descriptors back. It is idempotent.
func (f *Files) Close() error {
	var errs []error
	for _, file := range append(f.reading, f.self) {
		if err := file.Close(); !errors.Is(err, os.ErrClosed) {
			errs = append(errs, err)
		}
	}
	return errors.Join(append(errs, f.root.Close())...)
}

// Dir is the path of the folder: the one by which it was opened, or where it is now if it was moved since.
func (f *Files) Dir() string {
	if f.inPlace() {
		return f.path
	}
	if now, err := f.whereabouts(); err == nil {
		return now
	}
	return f.path
}

// inPlace says whether the folder is still at the path by which it was opened.
func (f *Files) inPlace() bool {
	named, err := os.Stat(f.path)
	if err != nil {
		return false
	}
	own, err := f.self.Stat()
	return err == nil && os.SameFile(named, own)
}

// whereabouts is the path that the kernel has for the folder. A removed folder has none: the error matches fs.ErrNotExist.
func (f *Files) whereabouts() (string, error) {
	now, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.self.Fd()))
	var own unix.Stat_t
	if err == nil {
		err = unix.Fstat(int(f.self.Fd()), &own)
	}
	if err == nil && own.Nlink == 0 {
		err = fs.ErrNotExist
	}
	return now, err
}

// name is a file's path, for messages.
func (f *Files) name(file string) string { return filepath.Join(f.path, file) }

// Open opens a regular file of the folder for reading.
func (f *Files) Open(file string) (*os.File, error) { return f.open(file, os.O_RDONLY) }

// open opens a regular file of the folder. It is looked at before it is opened, since opening a device may already do something,
// and again afterwards, since it may have been replaced in between.
func (f *Files) open(file string, flag int) (*os.File, error) {
	before, err := f.root.Lstat(file)
	if err != nil {
		return nil, at(f.name(file), err)
	}
	if err := ordinary(f.name(file), before); err != nil {
		return nil, err
	}
	opened, err := f.root.OpenFile(file, flag|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, at(f.name(file), err)
	}
	after, err := opened.Stat()
	if err == nil && !os.SameFile(before, after) {
		err = fmt.Errorf("open %s: it was replaced at the same moment; try again", f.name(file))
	}
	if err == nil {
		err = ordinary(f.name(file), after)
	}
	if err == nil && f.private && OwnerOf(after) != os.Geteuid() {
		err = fmt.Errorf("open %s: it is another user's", f.name(file))
	}
	if err != nil {
		return nil, errors.Join(err, opened.Close())
	}
	return opened, nil
}

// ordinary refuses what netdelta never makes in a folder of its own.
func ordinary(name string, info fs.FileInfo) error {
	if what := kindOf(info); what != "" {
		return fmt.Errorf("open %s: it is %s, which netdelta does not follow in a run folder; put the file itself in its place", name, what)
	}
	if n := namesOf(info); n > 1 {
		return fmt.Errorf("open %s: the file has %d names, so it may be one from outside of the run folder; copy the folder, and take the copy", name, n)
	}
	return nil
}

// Read reads a file of the folder, which must not be longer than most.
func (f *Files) Read(file string, most unit.Bytes) ([]byte, error) {
	opened, err := f.Open(file)
	if err != nil {
		return nil, err
	}
	data, err := readAll(opened, f.name(file), most)
	return data, errors.Join(err, opened.Close())
}

// Replace puts a new file in the place of what has its name, so that at any moment, and after a crash, it is there whole: the old
// one or the new.
func (f *Files) Replace(file string, mode fs.FileMode, write func(io.Writer) error) error {
	temporary := "." + file + "." + strings.ToLower(rand.Text()[:8])
	opened, err := f.root.OpenFile(temporary, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("write %w", at(f.name(file), err))
	}
	err = fill(opened, mode, write)
	if err == nil {
		err = f.root.Rename(temporary, file)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", f.name(file), err), f.root.Remove(temporary))
	}
	return f.sync()
}

// KeepFile puts data into a file of its own user's, whole or not at all, and returns when it is on disk. Its folder is made where there is none;
// others may read neither.
func KeepFile(path string, data []byte) error {
	dir, name := filepath.Split(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	files, err := OpenFiles(dir)
	if err != nil {
		return err
	}
	err = files.Replace(name, 0o600, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
	return errors.Join(err, files.Close())
}

// Remove removes a file of the folder, on disk too. That there is none is no error.
func (f *Files) Remove(file string) error {
	err := f.root.Remove(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("remove %s: %w", f.name(file), err)
	}
	return f.sync()
}

// Folder opens a folder within the folder, and makes it if there is none.
func (f *Files) Folder(name string) (*Files, error) {
	err := f.root.Mkdir(name, 0o755)
	if errors.Is(err, fs.ErrExist) {
		var info fs.FileInfo
		if info, err = f.root.Lstat(name); err == nil && !info.IsDir() {
			err = fmt.Errorf("it is %s and no folder; remove it", kindOf(info))
		}
	}
	var root *os.Root
	if err == nil {
		root, err = f.root.OpenRoot(name)
	}
	if err != nil {
		return nil, fmt.Errorf("make the folder %s: %w", f.name(name), err)
	}
	self, err := root.Open(".")
	if err != nil {
		return nil, errors.Join(at(f.name(name), err), root.Close())
	}
	return &Files{path: f.name(name), root: root, self: self}, nil
}

// writeJSON replaces a file of the folder by v as indented JSON.
func (f *Files) writeJSON(file string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", f.name(file), err)
	}
	return f.write(file, append(data, '\n'))
}

// write replaces a file of the folder.
func (f *Files) write(file string, data []byte) error {
	return explain(f.Replace(file, 0o644, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	}))
}

// sync makes the names in the folder durable.
func (f *Files) sync() error {
	err := f.self.Sync()
	if errors.Is(err, unix.EINVAL) {
		return nil // a file system whose folders can't be synced
	}
	if err != nil {
		return fmt.Errorf("sync the folder %s: %w", f.path, err)
	}
	return nil
}

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

// The greatest sizes of files that netdelta reads as a whole. Nothing that it writes, and no study of a person, comes near them.
const (
	StudyMost  = unit.MiB
	recordMost = 256 * unit.MiB
	lineMost   = 64 * unit.MiB // of a journal
)

// ReadFile reads a regular file that a user has named, by a link too, and that must not be longer than most. Anything else, such as
// a pipe or a device, which might never end, is refused at once.
func ReadFile(path string, most unit.Bytes) ([]byte, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	data, err := readAll(file, path, most)
	return data, errors.Join(err, file.Close())
}

// readAll reads an open file whose kind and size it checks first.
func readAll(file *os.File, name string, most unit.Bytes) ([]byte, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if what := kindOf(info); what != "" {
		return nil, fmt.Errorf("read %s: it is %s; give a regular file", name, what)
	}
	if info.Size() > int64(most) {
		return nil, tooLong(name, unit.Bytes(info.Size()), most)
	}
	data := bytes.NewBuffer(make([]byte, 0, info.Size()+bytes.MinRead))
	_, err = data.ReadFrom(io.LimitReader(file, int64(most)+1))
	if err == nil && data.Len() > int(most) { // it has grown, or is one whose size the kernel does not tell
		err = tooLong(name, unit.Bytes(data.Len()), most)
	}
	return data.Bytes(), err
}

func tooLong(name string, size, most unit.Bytes) error {
	return fmt.Errorf("read %s: it has %v, and such a file has at most %v; is it the right one?", name, size, most)
}

// kindOf is what a file is that is not a regular one, "" for one that is.
func kindOf(info fs.FileInfo) string {
	switch mode := info.Mode(); {
	case mode.IsRegular():
		return ""
	case mode.IsDir():
		return "a folder"
	case mode&fs.ModeSymlink != 0:
		return "a symbolic link"
	case mode&fs.ModeNamedPipe != 0:
		return "a pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	}
	return "a device"
}

// namesOf is how many names a file has.
func namesOf(info fs.FileInfo) int {
	if stat, is := info.Sys().(*syscall.Stat_t); is {
		return int(stat.Nlink)
	}
	return 1
}
