// Package vm boots guests: virtual machines with a full kernel, in which the same program does what this machine's kernel can't.
// A guest has no way to this machine's network; all that it is told and says goes through one serial port.
package vm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"netdelta/internal/procfile"
	"netdelta/internal/tail"
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

// consoleKept is how much of the console is kept, and qemuKept how much of what QEMU says.
const (
	consoleKept = 64 << 10
	qemuKept    = 4 << 10
)

// console keeps the end of what a guest's kernel says.
type console struct {
	from *os.File
	qemu *tail.Tail
	text *tail.Tail
	over chan struct{}
}

func newConsole(from *os.File) *console {
	return &console{from: from, qemu: tail.New(qemuKept), text: tail.New(consoleKept), over: make(chan struct{})}
}

func (c *console) read() {
	defer close(c.over)
	b := make([]byte, 4096)
	for {
		n, err := c.from.Read(b)
		_, _ = c.text.Write(b[:n]) // it takes everything
		if err != nil {
			return
		}
	}
}

// settle waits for the rest of what a guest that has ended said.
func (c *console) settle(ended <-chan struct{}) {
	select {
	case <-ended:
		select {
		case <-c.over:
		case <-time.After(time.Second):
		}
	default:
	}
}

// last are the last lines that are not empty.
func (c *console) last(most int) []string {
	var lines []string
	for line := range strings.SplitSeq(c.text.String(), "\n") {
		if line = strings.TrimRight(line, "\r "); line != "" {
			lines = append(lines, line)
		}
	}
	return lines[max(0, len(lines)-most):]
}

// processorTime is what a process has used so far, in hundredths of a second.
func processorTime(pid int) time.Duration {
	_, fields, err := procfile.Stat("/proc", pid)
	if err != nil {
		return 0
	}
	user, err1 := strconv.Atoi(fields[procfile.StatUser])
	system, err2 := strconv.Atoi(fields[procfile.StatUser+1])
	if errors.Join(err1, err2) != nil {
		return 0
	}
	return time.Duration(user+system) * 10 * time.Millisecond
}

// lookPause is how often a tape is looked at for more.
const lookPause = 20 * time.Millisecond

// tapes are what an exact guest writes onto in place of sockets: memory that takes everything at once. A socket that is full makes
// the guest's serial line wait until somebody on this machine has read from it, and the guest would notice how busy the machine is.
// What is written comes out of ours; ended says that no more will come.
func tapes(n int, ended <-chan struct{}) (ours, theirs []*os.File, err error) {
	defer func() {
		if err != nil {
			for _, f := range append(ours, theirs...) {
				err = errors.Join(err, f.Close())
			}
			err = fmt.Errorf("make a way to the guest: %w", err)
			ours, theirs = nil, nil
		}
	}()
	for range n {
		fd, err := unix.MemfdCreate("netdelta-tape", unix.MFD_CLOEXEC)
		if err != nil {
			return ours, theirs, err
		}
		theirs = append(theirs, os.NewFile(uintptr(fd), "tape"))
		again, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			return ours, theirs, err
		}
		tape := os.NewFile(uintptr(again), "tape")
		r, w, err := os.Pipe()
		if err != nil {
			return ours, theirs, errors.Join(err, tape.Close())
		}
		ours = append(ours, r)
		go play(tape, w, ended)
	}
	return ours, theirs, nil
}

// play hands on what is written onto a tape, until the end.
func play(tape, to *os.File, ended <-chan struct{}) {
	defer func() { _, _ = tape.Close(), to.Close() }()
	at, over := int64(0), false
	b := make([]byte, 64<<10)
	for {
		n, err := tape.ReadAt(b, at)
		at += int64(n)
		if n > 0 {
			if _, err := to.Write(b[:n]); err != nil {
				return // the reader is gone
			}
			continue
		}
		if over || !errors.Is(err, io.EOF) {
			return
		}
		select {
		case <-ended:
			over = true // but for what was written since the last look
		case <-time.After(lookPause):
		}
	}
}

// onto is the option that has QEMU write onto a descriptor that it inherits.
func onto(id string, fd int) string {
	return "file,id=" + id + ",path=/proc/self/fd/" + strconv.Itoa(fd) + ",append=on"
}
