package rpc

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"netdelta/internal/tail"
)

// stderrKept is how much of the end of a program's standard error is kept.
const stderrKept = 8 << 10

// Process is a program that runs at the other end of a stream, which carries its messages. Write goes to its standard input, Read comes
// from its standard output.
type Process struct {
	what   string
	stream *Stream
	kill   func(pid int) error
	lost   func(error) error
	pid    int
	out    *io.PipeReader // nil where its output goes elsewhere
	stderr *tail.Tail

	done chan struct{} // closed when it has ended
	exit Exit          // set before done is closed
	err  error         // likewise: why that is not known
}

// NewProcess waits until the program that a stream was opened for has started. Its output goes to stdout, or is left to Read where that is
// nil; standard error goes to stderr too, unless that is nil. kill ends the program, and lost words an error of the stream.
func NewProcess(s *Stream, what string, stdout, stderr io.Writer, kill func(pid int) error, lost func(error) error) (*Process, error) {
	p := &Process{what: what, stream: s, kill: kill, lost: lost, stderr: tail.New(stderrKept), done: make(chan struct{})}
	var into *io.PipeWriter
	if stdout == nil {
		p.out, into = io.Pipe()
		stdout = into
	}
	complaints := io.Writer(p.stderr)
	if stderr != nil {
		complaints = io.MultiWriter(p.stderr, stderr)
	}
	started := make(chan struct{})
	go func() {
		err := p.follow(started, stdout, complaints)
		if into != nil {
			_ = into.Close() // it never fails
		}
		p.err = errors.Join(err, s.Close())
		close(p.done)
		if p.pid == 0 {
			close(started)
		}
	}()
	<-started
	switch {
	case p.pid != 0:
		return p, nil
	case p.err != nil:
		return nil, p.err
	case p.exit.NotFound:
		return nil, fmt.Errorf("%s: %w", p.exit.Error, exec.ErrNotFound)
	}
	return nil, errors.New(p.exit.Error)
}

// follow takes messages to the end.
func (p *Process) follow(started chan<- struct{}, stdout, stderr io.Writer) error {
	exit, err := Follow(p.stream, func(kind MessageKind, content []byte) error {
		switch kind {
		case Started:
			var s Start
			if err := json.Unmarshal(content, &s); err != nil {
				return err
			}
			p.pid = s.PID
			close(started)
		case Stdout:
			_, _ = stdout.Write(content) // a reader that has closed its end does not want to know
		case Stderr:
			_, _ = stderr.Write(content)
		case Exited, Ready:
		}
		return nil
	})
	if err != nil {
		return p.lost(err)
	}
	p.exit = exit
	return nil
}

// Read implements io.Reader. There is nothing to read where the output goes elsewhere.
func (p *Process) Read(b []byte) (int, error) {
	if p.out == nil {
		return 0, io.EOF
	}
	return p.out.Read(b)
}

// CloseRead throws away what is still to be read.
func (p *Process) CloseRead() {
	if p.out != nil {
		_ = p.out.Close() // it never fails
	}
}

// Write implements io.Writer.
func (p *Process) Write(b []byte) (int, error) { return p.stream.Write(b) }

// CloseWrite closes standard input.
func (p *Process) CloseWrite() error { return p.stream.CloseWrite() }

// PID is the process's number where it runs.
func (p *Process) PID() int { return p.pid }

// Done is closed when the program has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Stderr is the end of what the program wrote to standard error.
func (p *Process) Stderr() string { return strings.TrimSpace(p.stderr.String()) }

// FailureReason implements testbed.Process: the error of Wait has it.
func (p *Process) FailureReason() string { return "" }

// Kill ends the program and what it started at once.
func (p *Process) Kill() error {
	p.CloseRead()
	select {
	case <-p.done:
		return nil
	default:
	}
	err := p.kill(p.pid)
	select {
	case <-p.done: // it had just ended
		return nil
	default:
		return err
	}
}

// Wait waits for the program's end. The error of one that failed is an *ExitError.
func (p *Process) Wait() error {
	<-p.done
	if p.err != nil {
		return p.err
	}
	if p.exit != (Exit{}) {
		return &ExitError{p.what, p.exit, p.Stderr()}
	}
	return nil
}

// ExitError says that a program failed.
type ExitError struct {
	What   string
	Exit   Exit
	Stderr string
}

// Error implements error.
func (e *ExitError) Error() string {
	text := fmt.Sprintf("%s: exit status %d", e.What, e.Exit.Status)
	switch {
	case e.Exit.Error != "":
		text = e.What + ": " + e.Exit.Error
	case e.Exit.Signal != 0:
		text = fmt.Sprintf("%s: ended by signal %v", e.What, unix.Signal(e.Exit.Signal))
	}
	if e.Stderr != "" {
		text += ": " + e.Stderr
	}
	return text
}

// MessageKind says what a message holds.
type MessageKind byte

// The kinds of messages.
const (
	Started MessageKind = 1 + iota // JSON of Start
	Stdout                         // bytes
	Stderr                         // bytes
	Exited                         // JSON of Exit; the last of a process
	Ready                          // JSON of what introduces an end that takes no requests; its first
)

// Start says that a program runs.
type Start struct {
	PID int `json:"pid"`
}

// Exit says how a program ended.
type Exit struct {
	// Status is the exit status, -1 where a signal ended it or it could not be started.
	Status int `json:"status"`
	Signal int `json:"signal,omitempty"`
	// Error is why it could not be started, or what failed about it otherwise.
	Error string `json:"error,omitempty"`
	// NotFound says that there is no such program.
	NotFound bool `json:"not_found,omitempty"`
}

// messageMost is the longest content of a message.
const messageMost = 64 << 10

// Writer writes messages. It is safe for concurrent use.
type Writer struct {
	mu sync.Mutex
	to io.Writer
}

// NewWriter writes messages to a stream.
func NewWriter(to io.Writer) *Writer { return &Writer{to: to} }

// Bytes writes output, in as many messages as it takes.
func (w *Writer) Bytes(k MessageKind, b []byte) error {
	for len(b) > 0 {
		n := min(len(b), messageMost)
		if err := w.message(k, b[:n]); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// JSON writes a message with a value.
func (w *Writer) JSON(k MessageKind, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return w.message(k, text)
}

func (w *Writer) message(k MessageKind, content []byte) error {
	message := binary.BigEndian.AppendUint32([]byte{byte(k)}, uint32(len(content)))
	message = append(message, content...)
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err := w.to.Write(message)
	return err
}

// ReadMessage reads one message. It returns io.EOF where the stream ends between two.
func ReadMessage(from io.Reader) (MessageKind, []byte, error) {
	var head [5]byte
	if _, err := io.ReadFull(from, head[:]); err != nil {
		if errors.Is(err, io.EOF) {
			return 0, nil, io.EOF
		}
		return 0, nil, fmt.Errorf("read a message: %w", err)
	}
	k, length := MessageKind(head[0]), binary.BigEndian.Uint32(head[1:])
	if k < Started || k > Ready || length > messageMost {
		return 0, nil, fmt.Errorf("read a message: a head of %x is not the protocol", head)
	}
	content := make([]byte, length)
	if _, err := io.ReadFull(from, content); err != nil {
		return 0, nil, fmt.Errorf("read a message: %w", err)
	}
	return k, content, nil
}

// Follow reads the messages of a process to the last one, which says how it ended. All others go to each.
func Follow(from io.Reader, each func(k MessageKind, content []byte) error) (e Exit, err error) {
	for {
		k, content, err := ReadMessage(from)
		if err != nil {
			return e, err
		}
		if k == Exited {
			return e, json.Unmarshal(content, &e)
		}
		if err := each(k, content); err != nil {
			return e, err
		}
	}
}

// Output writes what comes as messages of one kind.
type Output struct {
	To   *Writer
	Kind MessageKind
}

// Write implements io.Writer.
func (o Output) Write(b []byte) (int, error) {
	if err := o.To.Bytes(o.Kind, b); err != nil {
		return 0, err
	}
	return len(b), nil
}
