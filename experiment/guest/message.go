package guest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"netdelta/experiment"
	"netdelta/result"
)

// Message is one line from inside a guest. Exactly one of its fields is set.
type Message struct {
	// Head is the frame of the run: its cells, its environment so far. It comes before the first trial.
	Head *result.Run `json:"head,omitempty"`
	// Status is how far the run is.
	Status *experiment.Status `json:"status,omitempty"`
	// Trial is one that is finished.
	Trial *result.Trial `json:"trial,omitempty"`
	// Unsupported are the cells that can't be measured in the guest, with the reasons.
	Unsupported map[string]string `json:"unsupported,omitempty"`
	// End is the last message.
	End *End `json:"end,omitempty"`
}

// End says how a run inside a guest ended.
type End struct {
	// Error is what kept it from going on, "" if nothing did.
	Error string `json:"error,omitempty"`
	// Kind says what the error is about.
	Kind Kind `json:"kind,omitempty"`
	// Ended, Notes and Environment are the run's.
	Ended       string             `json:"ended,omitempty"`
	Notes       []string           `json:"notes,omitempty"`
	Environment result.Environment `json:"environment"`
}

// Kind is what an error is about.
type Kind string

// The kinds of errors that a caller treats differently.
const (
	BadInput Kind = "input"   // the study, or its budget
	Nothing  Kind = "nothing" // nothing of the study can be measured in the guest
)

// Writer writes messages, one a line. It is safe for concurrent use; after a failure it writes no more.
type Writer struct {
	mu  sync.Mutex
	out io.Writer
	err error
}

// NewWriter writes to out.
func NewWriter(out io.Writer) *Writer { return &Writer{out: out} }

// Send writes one message.
func (w *Writer) Send(m Message) error {
	line, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("encode a message to the host: %w", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		if _, err := w.out.Write(append(line, '\n')); err != nil {
			w.err = fmt.Errorf("tell the host: %w", err)
		}
	}
	return w.err
}

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
