package guest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// quietOut writes to a program's standard output, and returns when the serial line behind it has nothing left to send: what is
// measured next meets no interrupt of it.
type quietOut struct {
	out  io.Writer
	line *os.File
}

// handOver is how long the guest's first process may take to hand on what was written. Waiting costs nothing: the guest's clock
// goes on at once where nothing runs.
const handOver = 20 * time.Millisecond

// OpenOutput is the way from a program inside an exact guest to the host: out, which is sent over the line.
func OpenOutput(out io.Writer, line string) (io.WriteCloser, error) {
	fd, err := unix.Open(line, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open the serial line %s: %w; this works only inside a guest", line, err)
	}
	return &quietOut{out, os.NewFile(uintptr(fd), line)}, nil
}

// Write implements io.Writer.
func (q *quietOut) Write(b []byte) (int, error) {
	n, err := q.out.Write(b)
	if err != nil {
		return n, err
	}
	time.Sleep(handOver)
	if err := unix.IoctlSetInt(int(q.line.Fd()), unix.TCSBRK, 1); err != nil && !errors.Is(err, unix.EINTR) {
		return n, fmt.Errorf("wait for the serial line: %w", err)
	}
	return n, nil
}

// Close implements io.Closer.
func (q *quietOut) Close() error { return q.line.Close() }
