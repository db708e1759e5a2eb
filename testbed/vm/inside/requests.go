// Package inside is the first process of a guest: it makes the guest habitable, loads drivers, and then starts programs as the
// host asks over the channel. When the host is gone it switches the guest off.
package inside

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"netdelta/testbed/lab"
	"netdelta/testbed/rpc"
	"netdelta/testbed/vm/wire"
)

// serve answers one request, and ends with how it went.
func (g *guest) serve(s *rpc.Stream, r rpc.Request) {
	w := rpc.NewWriter(s)
	value, err := g.answer(s, r, w)
	exit, ok := value.(rpc.Exit)
	if !ok || err != nil {
		exit = failed(err)
	}
	_ = w.JSON(rpc.Exited, exit) // the host learns by the end of the stream what it could not be told
}

func (g *guest) answer(s *rpc.Stream, r rpc.Request, w *rpc.Writer) (any, error) {
	switch r.Op {
	case wire.OpExec:
		return rpc.Call(r, func(command wire.Command) (rpc.Exit, error) { return g.run(command, s, w), nil })
	case wire.OpSignal:
		return rpc.Call(r, func(to wire.Signal) (any, error) {
			err := unix.Kill(-to.PID, unix.Signal(to.Number))
			if errors.Is(err, unix.ESRCH) {
				err = nil // it has just ended
			}
			return nil, err
		})
	case wire.OpPut:
		return rpc.Call(r, func(f wire.File) (any, error) { return nil, put(f, s) })
	case wire.OpGet:
		return rpc.Call(r, func(f wire.File) (any, error) { return nil, get(f, w) })
	}
	return nil, r.Unknown()
}

func failed(err error) rpc.Exit {
	if err == nil {
		return rpc.Exit{}
	}
	return rpc.Exit{Status: -1, Error: err.Error(), NotFound: errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist)}
}

// run runs a program to its end. It is killed, with its process group, when the host closes the stream, or is gone. Without a
// stream it has no standard input and lives as long as it likes.
func (g *guest) run(command wire.Command, s *rpc.Stream, w *rpc.Writer) rpc.Exit {
	cmd := exec.Command(command.Path, command.Args...)
	// All network cards are the guest's own: whatever runs in it may take them.
	cmd.Env = append(append(os.Environ(), lab.CardsVariable+"="+lab.AllCards), command.Env...)
	cmd.Dir = command.Dir
	cmd.Dir = cmp.Or(cmd.Dir, "/")
	cmd.Stdout, cmd.Stderr = rpc.Output{To: w, Kind: rpc.Stdout}, rpc.Output{To: w, Kind: rpc.Stderr}
	cmd.WaitDelay = outputLate
	var stdin io.WriteCloser
	if s != nil {
		var err error
		if stdin, err = cmd.StdinPipe(); err != nil {
			return failed(err)
		}
	}
	if err := g.reaper.Start(cmd); err != nil {
		return failed(err)
	}
	pid := cmd.Process.Pid
	_ = w.JSON(rpc.Started, rpc.Start{PID: pid}) // where the host is gone, the guest ends
	done := make(chan struct{})
	if s != nil {
		go func() {
			_, _ = io.Copy(stdin, s) // the program may read no more, or have ended
			_ = stdin.Close()
			_, _ = io.Copy(io.Discard, s)
		}()
		go func() {
			select {
			case <-s.Left():
				_ = unix.Kill(-pid, unix.SIGKILL) // it may just have ended
			case <-done:
			}
		}()
	}
	err := g.reaper.Wait(cmd)
	close(done)
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil // it left others behind that hold its output open
	}
	return ended(cmd.ProcessState, err)
}

// ended says how a program ended.
func ended(state *os.ProcessState, err error) rpc.Exit {
	if state == nil {
		return failed(err)
	}
	status := state.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		return rpc.Exit{Status: -1, Signal: int(status.Signal())}
	}
	return rpc.Exit{Status: status.ExitStatus()}
}

func put(f wire.File, from io.Reader) error {
	if err := os.MkdirAll(filepath.Dir(f.Path), 0o755); err != nil {
		return err
	}
	out, err := os.OpenFile(f.Path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, f.Mode.Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(out, from)
	return errors.Join(err, out.Close())
}

func get(f wire.File, w *rpc.Writer) error {
	in, err := os.Open(f.Path)
	if err != nil {
		return err
	}
	_, err = io.Copy(rpc.Output{To: w, Kind: rpc.Stdout}, in)
	return errors.Join(err, in.Close())
}

// port is the guest's end of the channel.
type port struct {
	fd    int
	heard atomic.Bool // the host has written something
}

// pause is how long to wait before asking again for what the kernel can't wait for.
const pause = 5 * time.Millisecond

// openPort waits for the port to appear, and opens it.
func openPort(patience time.Duration) (*port, error) {
	for waited := time.Duration(0); ; waited += pause {
		device, err := findPort()
		if err != nil {
			return nil, err
		}
		if device != "" {
			fd, err := unix.Open(device, unix.O_RDWR|unix.O_CLOEXEC, 0)
			if err == nil {
				return &port{fd: fd}, nil
			}
			if waited >= patience {
				return nil, fmt.Errorf("open the channel to the host: %s: %w", device, err)
			}
		}
		if waited >= patience {
			return nil, fmt.Errorf("open the channel to the host: no port called %q appeared within %v", wire.Port, patience)
		}
		time.Sleep(pause)
	}
}

func findPort() (string, error) {
	names, err := filepath.Glob("/sys/class/virtio-ports/*/name")
	if err != nil {
		return "", err
	}
	for _, n := range names {
		if text, err := os.ReadFile(n); err == nil && strings.TrimSpace(string(text)) == wire.Port {
			return "/dev/" + filepath.Base(filepath.Dir(n)), nil
		}
	}
	return "", nil
}

// Read blocks in the kernel. An end before anything came means that the host has not connected yet.
func (p *port) Read(b []byte) (int, error) {
	for {
		n, err := unix.Read(p.fd, b)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return 0, fmt.Errorf("read from the host: %w", err)
		case n > 0:
			p.heard.Store(true)
			return n, nil
		case p.heard.Load():
			return 0, fmt.Errorf("the host has closed the channel")
		default:
			time.Sleep(pause)
		}
	}
}

// Write blocks until the host has taken it.
func (p *port) Write(b []byte) (int, error) {
	written := 0
	for written < len(b) {
		n, err := unix.Write(p.fd, b[written:])
		switch {
		case err == unix.EINTR || err == unix.EAGAIN:
		case err != nil:
			return written, fmt.Errorf("write to the host: %w", err)
		case n == 0:
			time.Sleep(pause)
		}
		written += max(n, 0)
	}
	return written, nil
}

// Close leaves the descriptor open: a thread may be blocked in it, and the guest is about to end.
func (p *port) Close() error { return nil }
