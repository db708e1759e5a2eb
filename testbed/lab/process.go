package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"netdelta/internal/native"
	"netdelta/internal/netns"
	"netdelta/internal/owner"
	"netdelta/internal/tail"
	"netdelta/testbed"
)

const (
	// grace is how long a process has to end by itself once its standard input is closed.
	grace = 2 * time.Second
	// stderrKept is how much of the end of standard error is kept.
	stderrKept = 8 << 10
	// stderrLate is how long the rest of standard error is waited for when a process has ended but others hold it open.
	stderrLate = 100 * time.Millisecond
)

// process is a program that runs in a pod, at the head of a session and process group of its own.
type process struct {
	what   string // for errors
	cmd    *exec.Cmd
	stdin  *os.File
	stdout *os.File
	stderr *tail.Tail

	done chan struct{} // closed when it has ended
	err  error         // set before done is closed

	mu     sync.Mutex
	reaped bool // its number may belong to another process now

	close    sync.Once
	closeErr error
}

var _ testbed.Process = (*process)(nil)

// start forks from a thread inside the namespace, so that the program needs no wrapper. Besides the standard files the program gets
// the further files, numbered from 3.
func start(ns *netns.Namespace, cmd testbed.Command, mark, pod string, further ...*os.File) (*process, error) {
	return startIn(ns, nil, cmd, mark, pod, further...)
}

// startIn is start in a control group of version 2, by its folder; nil is this program's.
func startIn(ns *netns.Namespace, group *os.File, cmd testbed.Command, mark, pod string, further ...*os.File) (*process, error) {
	if !filepath.IsAbs(cmd.Path) {
		return nil, errors.New("the path must be absolute")
	}
	env := cmd.Env
	if env == nil {
		env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8"}
	}
	p := &process{what: filepath.Base(cmd.Path) + " in " + pod, stderr: tail.New(stderrKept), done: make(chan struct{})}
	p.cmd = &exec.Cmd{
		Path: cmd.Path, Args: append([]string{cmd.Path}, cmd.Args...), Env: append(slices.Clone(env), owner.Variable+"="+mark),
		Stderr: p.stderr, ExtraFiles: further, WaitDelay: stderrLate, SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if group != nil {
		p.cmd.SysProcAttr.UseCgroupFD, p.cmd.SysProcAttr.CgroupFD = true, int(group.Fd())
	}
	// What it has written can be read on when it has ended, so that these pipes are not exec's.
	in, stdin, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make a pipe: %w", err)
	}
	defer closeFiles(in)
	stdout, out, err := os.Pipe()
	if err != nil {
		closeFiles(stdin)
		return nil, fmt.Errorf("make a pipe: %w", err)
	}
	defer closeFiles(out)
	p.stdin, p.stdout, p.cmd.Stdin, p.cmd.Stdout = stdin, stdout, in, out
	err = ns.DoOnce(func() error {
		if err := native.Pin(cmd.CPUs...); err != nil {
			return err
		}
		return p.cmd.Start()
	})
	if err != nil {
		closeFiles(stdin, stdout)
		return nil, err
	}
	go p.reap()
	return p, nil
}

// reap waits for the end. The process stays a zombie until nothing can signal it any more, so that no signal ever reaches
// another process that got its number.
func (p *process) reap() {
	defer close(p.done)
	for {
		err := unix.Waitid(unix.P_PID, p.PID(), nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	p.mu.Lock()
	err := p.cmd.Wait()
	p.reaped = true
	p.mu.Unlock()
	var failed *exec.ExitError
	switch {
	case errors.As(err, &failed):
		p.err = fmt.Errorf("%s: %s", p.what, failed.ProcessState)
		if said := strings.TrimSpace(p.stderr.String()); said != "" {
			p.err = fmt.Errorf("%w: %s", p.err, said)
		}
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		p.err = fmt.Errorf("wait for %s: %w", p.what, err)
	}
}

// Read implements io.Reader.
func (p *process) Read(b []byte) (int, error) {
	n, err := p.stdout.Read(b)
	if errors.Is(err, os.ErrClosed) {
		err = io.EOF
	}
	return n, err
}

// Write implements io.Writer.
func (p *process) Write(b []byte) (int, error) { return p.stdin.Write(b) }

// PID implements testbed.Process.
func (p *process) PID() int { return p.cmd.Process.Pid }

// Stderr implements testbed.Process.
func (p *process) Stderr() string { return p.stderr.String() }

// FailureReason implements testbed.Process: a pod is on this machine, and not lost before it.
func (p *process) FailureReason() string { return "" }

// Wait implements testbed.Process.
func (p *process) Wait() error {
	<-p.done
	return p.err
}

// Kill implements testbed.Process: it kills the whole group. A process that has ended is no error.
func (p *process) Kill() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return nil
	}
	if err := unix.Kill(-p.PID(), unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("kill %s: %w", p.what, err)
	}
	return nil
}

// gone waits for the end of a process that was killed.
func (p *process) gone() error {
	select {
	case <-p.done:
		return nil
	case <-time.After(endPatience):
		return fmt.Errorf("%s (%d): %w", p.what, p.PID(), errInKernel)
	}
}

// errHung says of a process that it had to be killed.
var errHung = fmt.Errorf("did not end within %s of the end of its input", grace)

// Close implements testbed.Process. It is idempotent; its error is the process's, or says that it had to be killed.
func (p *process) Close() error {
	p.close.Do(func() {
		_ = p.stdin.Close() // it may have gone already
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-p.done:
			p.closeErr = p.err
		case <-timer.C:
			p.closeErr = errors.Join(fmt.Errorf("%s %w: killed", p.what, errHung), p.Kill(), p.gone())
		}
		_ = p.stdout.Close()
	})
	return p.closeErr
}

func closeFiles(files ...*os.File) {
	for _, f := range files {
		if f != nil {
			_ = f.Close()
		}
	}
}

// processes are those that a lab has started and that may run still.
type processes struct {
	mu  sync.Mutex
	all map[*process]struct{}
}

// add keeps a process until it has ended.
func (ps *processes) add(p *process) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if ps.all == nil {
		ps.all = map[*process]struct{}{}
	}
	ps.all[p] = struct{}{}
	go func() {
		<-p.done
		ps.mu.Lock()
		defer ps.mu.Unlock()
		delete(ps.all, p)
	}()
}

// killAll ends all of them and waits until they are gone.
func (ps *processes) killAll() error {
	ps.mu.Lock()
	all := slices.Collect(maps.Keys(ps.all))
	ps.mu.Unlock()
	var err error
	for _, p := range all {
		err = errors.Join(err, p.Kill())
	}
	for _, p := range all {
		err = errors.Join(err, p.gone())
		closeFiles(p.stdin, p.stdout)
	}
	return err
}

// Processes are programs that run in network namespaces which others have made. They are safe for concurrent use.
type Processes struct {
	mark    string // what their environment carries
	running processes
}

// NewProcesses are none yet.
func NewProcesses() (*Processes, error) {
	self, err := owner.Self()
	if err != nil {
		return nil, err
	}
	return &Processes{mark: fmt.Sprintf("%s-%d-0", self, time.Now().UnixNano())}, nil
}

// Start runs a command in a namespace, which errors call by the pod's name.
func (ps *Processes) Start(ctx context.Context, ns *netns.Namespace, cmd testbed.Command, pod string) (testbed.Process, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("start %s in %s: %w", cmd.Path, pod, err)
	}
	p, err := start(ns, cmd, ps.mark, pod)
	if err != nil {
		return nil, fmt.Errorf("start %s in %s: %w", cmd.Path, pod, err)
	}
	ps.running.add(p)
	return p, nil
}

// Close kills what still runs, and waits until it has ended. It is idempotent.
func (ps *Processes) Close() error { return errors.Join(ps.running.killAll(), killStrays(ps.mark)) }
