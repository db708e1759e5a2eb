// Package daemon runs programs of others for as long as they are needed: servers, with their configuration and data in
// memory, and the tools that prepare or load them. Whatever it starts ends with this process, however that ends, and nothing
// of it stays: no process, no file, no mount.
package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"netdelta/internal/native"
	"netdelta/internal/procfile"
	"netdelta/internal/tail"
	"netdelta/unit"
)

// Spec is a program to run in a sandbox.
type Spec struct {
	Name string // for people: "ceph-osd.1"; "" is the program's
	Path string // a file's path, or a name to look for
	Args []string
	Env  []string // KEY=value, added to the environment of this process
	User string   // to run as, a user of this machine; "" is this process's
	CPUs []int    // processors that it is pinned to; none lets it run on all. See Pin
	// Log is a file of the sandbox, relative to its folder, to which the program writes what it has to say; "" if it does so on its
	// standard output and error.
	Log string
	// Signal asks the program to end; 0 is SIGTERM. Grace is how long it may take; 0 is 5 s.
	Signal syscall.Signal
	Grace  time.Duration
}

// grace is how long a program may take to end when nothing else is said.
const grace = 5 * time.Second

// Pin is what Spec.CPUs must be for one processor; a negative one is none.
func Pin(cpu int) []int {
	if cpu < 0 {
		return nil
	}
	return []int{cpu}
}

// Daemon is a program that runs. Its methods may be called by several goroutines.
type Daemon struct {
	spec    Spec
	sandbox *Sandbox
	cmd     *exec.Cmd
	words   *tail.Tail
	done    chan struct{}
	err     error // how it ended, once done is closed
}

// Start starts a program in the sandbox. The program is killed if this process ends, however it does.
func (h *Sandbox) Start(spec Spec) (*Daemon, error) {
	return h.start(spec, nil, &h.daemons)
}

// start starts a program among others, by which Close finds it. Its standard output goes to out, or to the words it is
// remembered by where that is nil.
func (h *Sandbox) start(spec Spec, out *strings.Builder, among *[]*Daemon) (*Daemon, error) {
	d := &Daemon{spec: spec, sandbox: h, words: tail.New(tailRoom), done: make(chan struct{})}
	d.spec.Name = cmp.Or(d.spec.Name, filepath.Base(spec.Path))
	path, err := Look(spec.Path)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", d.spec.Name, err)
	}
	d.cmd = exec.Command(path, spec.Args...)
	d.cmd.Env = append(append(os.Environ(), "TMPDIR="+h.Path(temporary)), spec.Env...)
	d.cmd.Dir = h.Path()
	d.cmd.Stdout, d.cmd.Stderr = d.words, d.words
	if out != nil {
		d.cmd.Stdout = out
	}
	// What a program leaves behind itself must not keep Wait waiting for its output.
	d.cmd.WaitDelay = time.Second
	// A signal at the death of this process can't be asked for: seen from another PID namespace, the parent is dead from the
	// start. The namespace's first process does it for all.
	d.cmd.SysProcAttr = &syscall.SysProcAttr{}
	if h.plain { // there, all are in one PID namespace, and this thread stays as long as the sandbox
		d.cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
		d.cmd.Env = append(d.cmd.Env, h.mark())
	}
	if spec.User != "" {
		if d.cmd.SysProcAttr.Credential, err = credential(spec.User); err != nil {
			return nil, fmt.Errorf("start %s: %w", d.spec.Name, err)
		}
	}
	starved := procfile.Starved(h.groups)
	err = h.Do(func() error {
		if err := pinned(spec.CPUs, d.cmd.Start); err != nil {
			return err
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		*among = append(*among, d)
		return nil
	})
	if err != nil {
		if spec.User != "" && (errors.Is(err, unix.EPERM) || errors.Is(err, unix.EINVAL)) {
			err = fmt.Errorf("become %s: %w; it takes root, outside of a user namespace", spec.User, err)
		}
		return nil, fmt.Errorf("start %s: %w", d.spec.Name, err)
	}
	go func() {
		if d.err = d.cmd.Wait(); errors.Is(d.err, exec.ErrWaitDelay) {
			d.err = nil // it ended well, and has left something running
		} else if d.err != nil && procfile.Starved(h.groups) > starved {
			d.err = fmt.Errorf("%w, when the kernel killed for want of memory (in Kubernetes, --memory gives more)", d.err)
		}
		close(d.done)
	}()
	return d, nil
}

// pinned calls f, and has what it starts run on the given processors; none leaves it as it is. It is called on a locked thread.
func pinned(cpus []int, f func() error) error {
	if len(cpus) == 0 {
		return f()
	}
	var before unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return fmt.Errorf("ask for the processors of a thread: %w", err)
	}
	if err := native.Pin(cpus...); err != nil {
		return err
	}
	return errors.Join(f(), unix.SchedSetaffinity(0, &before))
}

// credential is a user's.
func credential(name string) (*syscall.Credential, error) {
	u, err := user.Lookup(name)
	if err != nil {
		return nil, fmt.Errorf("find user %s: %w", name, err)
	}
	uid, errUser := strconv.ParseUint(u.Uid, 10, 32)
	gid, errGroup := strconv.ParseUint(u.Gid, 10, 32)
	if err := errors.Join(errUser, errGroup); err != nil {
		return nil, fmt.Errorf("find user %s: %w", name, err)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

// Run runs a program in the sandbox to its end, and gives what it wrote to standard output. The error of one that failed has
// its last words. It is killed when ctx ends.
func (h *Sandbox) Run(ctx context.Context, spec Spec) ([]byte, error) {
	ran, err := h.Measure(ctx, spec)
	return ran.Output, err
}

// Ran is what came of a program that was run.
type Ran struct {
	Output   []byte        // standard output
	CPU      time.Duration // processor time, its own and the kernel's for it
	Switches int64         // how often it was preempted (involuntary context switches)
}

// Measure is Run that also says what the program took.
func (h *Sandbox) Measure(ctx context.Context, spec Spec) (Ran, error) {
	var out strings.Builder
	d, err := h.start(spec, &out, &h.children)
	if err != nil {
		return Ran{}, err
	}
	defer func() {
		h.mu.Lock()
		h.children = slices.DeleteFunc(h.children, func(o *Daemon) bool { return o == d })
		h.mu.Unlock()
	}()
	killed := false
	select {
	case <-d.done:
	case <-ctx.Done():
		killed = true
		_ = d.Kill() // what matters is why
	}
	state := d.cmd.ProcessState
	ran := Ran{Output: []byte(out.String()), CPU: state.UserTime() + state.SystemTime()}
	if usage, ok := state.SysUsage().(*syscall.Rusage); ok {
		ran.Switches = usage.Nivcsw
	}
	switch {
	case killed:
		return ran, fmt.Errorf("%s: %w; %s", d.spec.Name, context.Cause(ctx), d.lastWords())
	case d.err != nil:
		return ran, fmt.Errorf("%s: %w; %s", d.spec.Name, d.err, d.lastWords())
	}
	return ran, nil
}

// Name is the daemon's, for people.
func (d *Daemon) Name() string { return d.spec.Name }

// PID is the number of its process.
func (d *Daemon) PID() int { return d.cmd.Process.Pid }

// Ended is closed when the daemon has ended.
func (d *Daemon) Ended() <-chan struct{} { return d.done }

// Err says of a daemon that has ended how it did, with its last words; nil while it runs.
func (d *Daemon) Err() error {
	select {
	case <-d.done:
	default:
		return nil
	}
	how := "it ended by itself"
	if d.err != nil {
		how = d.err.Error()
	}
	return fmt.Errorf("%s: %s; %s", d.spec.Name, how, d.lastWords())
}

// lastWords are the last lines of what the daemon said, as an error has them.
func (d *Daemon) lastWords() string {
	if log := d.Log(); log != "" {
		return "its last words: " + log
	}
	return "it said nothing"
}

// logLines is how many of a log's last lines are shown.
const logLines = 8

// Log is the last lines of what the daemon said.
func (d *Daemon) Log() string {
	lines := strings.Split(strings.TrimSpace(d.Said()), "\n")
	return strings.Join(lines[max(0, len(lines)-logLines):], "\n")
}

// Said is the end of what the daemon said, up to 8 KiB of each place to which it says things: for those who know which of its lines
// matter.
func (d *Daemon) Said() string {
	text := d.words.String()
	if d.spec.Log != "" {
		_ = d.sandbox.Do(func() error { // a log that can't be read is one that says nothing
			data, err := os.ReadFile(d.sandbox.Path(d.spec.Log))
			text += string(data[max(0, len(data)-tailRoom):])
			return err
		})
	}
	return text
}

// Memory is the daemon's resident set; 0 when it has ended.
func (d *Daemon) Memory() unit.Bytes {
	p, err := procfs.NewProc(d.PID())
	if err != nil {
		return 0
	}
	s, err := p.Stat()
	if err != nil {
		return 0
	}
	return unit.Bytes(s.ResidentMemory())
}

// Stop asks the daemon to end, and kills it when it does not within its grace. It is idempotent; how the daemon ended is no
// error.
func (d *Daemon) Stop() error {
	signal, patience := d.spec.Signal, d.spec.Grace
	signal = cmp.Or(signal, syscall.SIGTERM)
	patience = cmp.Or(patience, grace)
	if err := d.signal(signal); err != nil {
		return err
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-d.done:
		return nil
	case <-timer.C:
		return d.Kill()
	}
}

// Kill kills the daemon and waits until it is gone. It is idempotent.
func (d *Daemon) Kill() error {
	if err := d.signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-d.done
	return nil
}

// signal sends a signal to a daemon that may have ended.
func (d *Daemon) signal(s syscall.Signal) error {
	if err := d.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("send %v to %s: %w", s, d.spec.Name, err)
	}
	return nil
}

// tailRoom is how much of what a program says is kept.
const tailRoom = 8 << 10

// FinalError is an error with which Until need not ask again.
type FinalError struct{ Err error }

// Error implements error.
func (f FinalError) Error() string { return f.Err.Error() }

// Unwrap is the error itself.
func (f FinalError) Unwrap() error { return f.Err }

// Until asks again and again until ready returns nil or a FinalError. It gives up when ctx ends, or a daemon, which may be nil: the
// error then says why, and what ready said last.
func Until(ctx context.Context, d *Daemon, every time.Duration, ready func(context.Context) error) error {
	var ended <-chan struct{}
	if d != nil {
		ended = d.Ended()
	}
	for {
		err := ready(ctx)
		if err == nil || errors.As(err, &FinalError{}) {
			return err
		}
		select {
		case <-ended:
			return d.Err()
		case <-ctx.Done():
			if d != nil {
				return fmt.Errorf("%s is not ready: %w (%w); it says: %s", d.Name(), err, context.Cause(ctx), d.Log())
			}
			return fmt.Errorf("%w (%w)", err, context.Cause(ctx))
		case <-time.After(every):
		}
	}
}
