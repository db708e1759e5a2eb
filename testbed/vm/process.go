package vm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"netdelta/testbed"
	"netdelta/testbed/rpc"
	"netdelta/testbed/vm/wire"
)

const (
	// grace is how long a process has to end by itself once its standard input is closed.
	grace = 2 * time.Second
	// stderrKept is how much of the end of standard error is kept.
	stderrKept = 8 << 10
)

// Command is a program to run in a guest.
type Command struct {
	Path string // absolute, or a name to be found on the guest's PATH
	Args []string
	Env  []string // in addition to PATH and HOME
	Dir  string   // "" is /
	// Stdout and Stderr get what it writes, as it comes. A nil Stdout leaves it to Process.Read; the end of standard error is kept
	// in any case.
	Stdout, Stderr io.Writer
}

// Process is a program that runs in a guest. Write goes to its standard input, Read comes from its standard output.
type Process struct {
	guest  *Guest
	what   string
	stream *rpc.Stream
	pid    int
	stdout io.Writer
	reader *io.PipeReader
	stderr ending

	done chan struct{} // closed when it has ended
	exit rpc.Exit      // set before done is closed
	err  error         // likewise: why that is not known

	close    sync.Once
	closeErr error
}

var _ testbed.Process = (*Process)(nil)

// Exec starts a program in the guest. It is killed when ctx ends.
func (g *Guest) Exec(ctx context.Context, c Command) (*Process, error) {
	s, err := g.request(wire.OpExec, wire.Command{Path: c.Path, Args: c.Args, Env: c.Env, Dir: c.Dir})
	if err != nil {
		return nil, fmt.Errorf("start %s in the guest: %w", c.Path, err)
	}
	p := &Process{guest: g, what: filepath.Base(c.Path) + " in the guest", stream: s, done: make(chan struct{}), stderr: ending{most: stderrKept}}
	var into *io.PipeWriter
	if p.stdout = c.Stdout; p.stdout == nil {
		p.reader, into = io.Pipe()
		p.stdout = into
	}
	started := make(chan struct{})
	go p.follow(started, into, c.Stderr)
	stop := context.AfterFunc(ctx, func() { _ = p.Kill() })
	go func() { <-p.done; stop() }()
	<-started
	if p.pid == 0 {
		<-p.done
		return nil, fmt.Errorf("start %s in the guest: %w", c.Path, p.startFailure())
	}
	return p, nil
}

func (p *Process) startFailure() error {
	switch {
	case p.err != nil:
		return p.err
	case p.exit.NotFound:
		return fmt.Errorf("%s: %w", p.exit.Error, exec.ErrNotFound)
	}
	return errors.New(p.exit.Error)
}

func (g *Guest) request(op string, args any) (*rpc.Stream, error) {
	s, err := g.conn.Begin(op, args)
	if err != nil {
		return nil, g.gone(err)
	}
	return s, nil
}

// gone explains why the channel broke off.
func (g *Guest) gone(err error) error {
	if errors.Is(err, rpc.ErrClosed) {
		return fmt.Errorf("the guest is closed: %w", err)
	}
	select {
	case <-g.done:
	case <-time.After(time.Second): // the channel ends a little before QEMU does
	}
	return g.failure("ended: " + err.Error())
}

// follow takes messages to the end.
func (p *Process) follow(started chan<- struct{}, into *io.PipeWriter, stderr io.Writer) {
	err := p.messages(started, stderr)
	if into != nil {
		_ = into.Close() // it never fails
	}
	p.err = errors.Join(err, p.stream.Close())
	close(p.done)
	if p.pid == 0 {
		close(started)
	}
}

func (p *Process) messages(started chan<- struct{}, stderr io.Writer) error {
	for {
		kind, content, err := rpc.ReadMessage(p.stream)
		if err != nil {
			if broken := p.guest.conn.Err(); broken != nil {
				return p.guest.gone(broken)
			}
			return fmt.Errorf("%s: its output broke off: %w", p.what, err)
		}
		switch kind {
		case rpc.Started:
			var s rpc.Start
			if err := json.Unmarshal(content, &s); err != nil {
				return err
			}
			p.pid = s.PID
			close(started)
		case rpc.Stdout:
			_, _ = p.stdout.Write(content) // who reads no more does not want to know
		case rpc.Stderr:
			_, _ = p.stderr.Write(content)
			if stderr != nil {
				_, _ = stderr.Write(content)
			}
		case rpc.Exited:
			return json.Unmarshal(content, &p.exit)
		case rpc.Ready:
		}
	}
}

// Read implements io.Reader. Where Command.Stdout was given there is nothing to read.
func (p *Process) Read(b []byte) (int, error) {
	if p.reader == nil {
		return 0, io.EOF
	}
	return p.reader.Read(b)
}

// Write implements io.Writer.
func (p *Process) Write(b []byte) (int, error) { return p.stream.Write(b) }

// CloseWrite closes standard input.
func (p *Process) CloseWrite() error { return p.stream.CloseWrite() }

// PID implements testbed.Process: the number is the guest's.
func (p *Process) PID() int { return p.pid }

// Stderr implements testbed.Process.
func (p *Process) Stderr() string { return p.stderr.String() }

// FailureReason implements testbed.Process: the error of Wait has it.
func (p *Process) FailureReason() string { return "" }

// Signal sends a signal to the program and those that it started.
func (p *Process) Signal(number unix.Signal) error {
	err := p.guest.simple(wire.OpSignal, wire.Signal{PID: p.pid, Number: int(number)}, nil, nil)
	if err != nil {
		return fmt.Errorf("send %v to %s: %w", number, p.what, err)
	}
	return nil
}

// Kill implements testbed.Process: it ends the program and those that it started at once.
func (p *Process) Kill() error {
	if p.reader != nil {
		_ = p.reader.Close() // it never fails; what is still to come is thrown away
	}
	select {
	case <-p.done:
		return nil
	default:
	}
	err := p.Signal(unix.SIGKILL)
	select {
	case <-p.done: // it had just ended
		return nil
	default:
		return err
	}
}

// Close implements testbed.Process.
func (p *Process) Close() error {
	p.close.Do(func() {
		err := p.CloseWrite()
		select {
		case <-p.done:
		case <-time.After(grace):
		}
		if killed := p.Kill(); err == nil {
			err = killed
		}
		<-p.done
		// A guest that has ended has ended its programs too.
		if p.guest.conn.Err() == nil && !errors.Is(err, rpc.ErrClosed) {
			p.closeErr = err
		}
	})
	return p.closeErr
}

// ExitError says that a program in a guest failed.
type ExitError struct {
	What   string
	Exit   rpc.Exit
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

// Wait implements testbed.Process. The error of a program that failed is an *ExitError.
func (p *Process) Wait() error {
	<-p.done
	if p.err != nil {
		return p.err
	}
	if p.exit != (rpc.Exit{}) {
		return &ExitError{p.what, p.exit, p.Stderr()}
	}
	return nil
}

// Put writes a file of the guest.
func (g *Guest) Put(path string, mode fs.FileMode, from io.Reader) error {
	if err := g.simple(wire.OpPut, wire.File{Path: path, Mode: mode}, from, nil); err != nil {
		return fmt.Errorf("write %s in the guest: %w", path, err)
	}
	return nil
}

// Get reads a file of the guest.
func (g *Guest) Get(path string, to io.Writer) error {
	if err := g.simple(wire.OpGet, wire.File{Path: path}, nil, to); err != nil {
		return fmt.Errorf("read %s of the guest: %w", path, err)
	}
	return nil
}

// simple makes a request that is answered by output and an end.
func (g *Guest) simple(op string, args any, from io.Reader, to io.Writer) (err error) {
	s, err := g.request(op, args)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if from != nil {
		if _, err := io.Copy(s, from); err != nil && !errors.Is(err, rpc.ErrDropped) {
			return err
		}
	}
	if err := s.CloseWrite(); err != nil {
		return err
	}
	for {
		kind, content, err := rpc.ReadMessage(s)
		if err != nil {
			return err
		}
		switch kind {
		case rpc.Stdout:
			if _, err := to.Write(content); err != nil {
				return err
			}
		case rpc.Exited:
			var e rpc.Exit
			if err := json.Unmarshal(content, &e); err != nil {
				return err
			}
			if e.Error != "" {
				if e.NotFound {
					return fmt.Errorf("%s: %w", e.Error, fs.ErrNotExist)
				}
				return errors.New(e.Error)
			}
			return nil
		case rpc.Started, rpc.Stderr, rpc.Ready:
		}
	}
}
