package result

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"netdelta/unit"
)

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
