package vm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"netdelta/testbed"
	"netdelta/testbed/rpc"
	"netdelta/testbed/vm/wire"
)

// grace is how long a process has to end by itself once its standard input is closed.
const grace = 2 * time.Second

// Command is a program to run in a guest.
type Command = wire.Command

// Process is a program that runs in a guest.
type Process struct {
	*rpc.Process
	guest *Guest
	what  string

	close    sync.Once
	closeErr error
}

var _ testbed.Process = (*Process)(nil)

// Exec starts a program in the guest. It is killed when ctx ends.
func (g *Guest) Exec(ctx context.Context, c Command) (*Process, error) {
	s, err := g.request(wire.OpExec, c)
	if err != nil {
		return nil, fmt.Errorf("start %s in the guest: %w", c.Path, err)
	}
	p := &Process{guest: g, what: filepath.Base(c.Path) + " in the guest"}
	p.Process, err = rpc.NewProcess(s, p.what, c.Stdout, c.Stderr, func(pid int) error { return p.signal(pid, unix.SIGKILL) }, p.lost)
	if err != nil {
		return nil, fmt.Errorf("start %s in the guest: %w", c.Path, err)
	}
	stop := context.AfterFunc(ctx, func() { _ = p.Kill() })
	go func() { <-p.Done(); stop() }()
	return p, nil
}

// lost explains an error of the program's stream.
func (p *Process) lost(err error) error {
	if broken := p.guest.conn.Err(); broken != nil {
		return p.guest.gone(broken)
	}
	return fmt.Errorf("%s: its output broke off: %w", p.what, err)
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

// Signal sends a signal to the program and those that it started.
func (p *Process) Signal(number unix.Signal) error { return p.signal(p.PID(), number) }

func (p *Process) signal(pid int, number unix.Signal) error {
	err := p.guest.simple(wire.OpSignal, wire.Signal{PID: pid, Number: int(number)}, nil, nil)
	if err != nil {
		return fmt.Errorf("send %v to %s: %w", number, p.what, err)
	}
	return nil
}

// Close implements testbed.Process.
func (p *Process) Close() error {
	p.close.Do(func() {
		err := p.CloseWrite()
		select {
		case <-p.Done():
		case <-time.After(grace):
		}
		if killed := p.Kill(); err == nil {
			err = killed
		}
		<-p.Done()
		// A guest that has ended has ended its programs too.
		if p.guest.conn.Err() == nil && !errors.Is(err, rpc.ErrClosed) {
			p.closeErr = err
		}
	})
	return p.closeErr
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
	e, err := rpc.Follow(s, func(kind rpc.MessageKind, content []byte) (err error) {
		if kind == rpc.Stdout {
			_, err = to.Write(content)
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case e.NotFound:
		return fmt.Errorf("%s: %w", e.Error, fs.ErrNotExist)
	case e.Error != "":
		return errors.New(e.Error)
	}
	return nil
}
