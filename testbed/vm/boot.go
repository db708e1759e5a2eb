package vm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"netdelta/internal/gather"
	"netdelta/testbed/rpc"
	"netdelta/testbed/vm/image"
	"netdelta/testbed/vm/wire"
)

// Guest is a running guest. Close is idempotent, and the guest ends with this program however that ends.
type Guest struct {
	Machine Machine // as it was completed
	Hello   wire.Hello
	// Ready is what it took to get ready.
	Ready Effort

	console *console
	channel *os.File
	conn    *rpc.Conn
	qemu    *os.Process

	done  chan struct{} // closed when QEMU has ended
	state *os.ProcessState
	close sync.Once
}

// Effort is time and processor time.
type Effort struct{ Wall, CPU time.Duration }

// lastLines is how many lines of a console an error shows: a panic, with what led to it, takes some forty.
const lastLines = 48

// BootError says that a guest did not get ready, or ended too early. Its last words are in it.
type BootError struct {
	Why  string
	Last []string // lines of its console
	QEMU string   // what QEMU said, if anything
}

// Error implements error.
func (e *BootError) Error() string {
	text := "the guest " + e.Why
	if e.QEMU != "" {
		text += "\nQEMU said: " + e.QEMU
	}
	if len(e.Last) == 0 {
		return text + "\nits console showed nothing"
	}
	text += "\nthe last lines of its console:"
	for _, l := range e.Last {
		text += "\n  | " + l
	}
	return text
}

// Boot starts a guest and waits until it is ready. The error is an *InvalidError for a machine that can't be, and a *BootError for
// a guest that does not get ready.
func Boot(ctx context.Context, i image.Image, m Machine) (*Guest, error) {
	for left := boots; ; left-- {
		g, err := start(ctx, i, m)
		if err != nil {
			return nil, err
		}
		if err = g.greet(ctx); err == nil {
			return g, nil
		}
		err = errors.Join(err, g.Close())
		if left == 1 || !g.aborted() {
			return nil, err
		}
	}
}

// boots is how often a guest is booted whose QEMU aborts. Under translation a boot fails an assertion of QEMU's now and then
// (iotlb_to_section), while the guest's kernel sets its devices up.
const boots = 3

// aborted says that QEMU, which has ended, ended itself by a signal.
func (g *Guest) aborted() bool {
	status, ok := g.state.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGABRT
}

// start starts QEMU.
func start(ctx context.Context, i image.Image, m Machine) (*Guest, error) {
	m, err := m.complete()
	if err != nil {
		return nil, err
	}
	if m.Accel == "" {
		if m.Accel, err = Accelerator(ctx, i); err != nil {
			return nil, err
		}
	}
	files, err := initrd(i, m)
	if err != nil {
		return nil, err
	}
	done := make(chan struct{})
	ours, theirs, err := m.ways(done)
	if err != nil {
		return nil, errors.Join(err, files.Close())
	}
	g := &Guest{Machine: m, console: newConsole(ours[0]), channel: ours[1], done: done}
	path, args, env := i.Emulator()
	cmd := exec.Command(path, append(args, m.arguments(i.KernelFile())...)...)
	cmd.Env = append([]string{"PATH=/usr/bin:/bin"}, env...)
	cmd.ExtraFiles = append(slices.Clone(theirs), files)
	for _, l := range m.Links {
		cmd.ExtraFiles = append(cmd.ExtraFiles, l.End)
	}
	cmd.Stderr = g.console.qemu
	// An interrupt from the terminal is for this program, which then ends the guest. The guest ends with it in any case.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: unix.SIGKILL}
	started := make(chan error, 1)
	go g.run(cmd, started)
	err = <-started
	err = errors.Join(err, theirs[0].Close(), theirs[1].Close(), files.Close())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start a guest: %w", err), g.Close())
	}
	go g.console.read()
	return g, nil
}

// run starts QEMU and waits for its end, on a thread that lives as long: the kernel ends a process when the thread that started it
// is gone.
func (g *Guest) run(cmd *exec.Cmd, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := cmd.Start()
	g.qemu = cmd.Process
	if err != nil {
		close(g.done)
		started <- err
		return
	}
	started <- nil
	_ = cmd.Wait() // how it ended is in its state
	g.state = cmd.ProcessState
	close(g.done)
}

// ways makes the connections for the console and the channel, and returns our ends and QEMU's.
func (m Machine) ways(ended <-chan struct{}) (ours, theirs []*os.File, err error) {
	if m.Exact != nil {
		return tapes(2, ended)
	}
	return pairs(2)
}

// Wire makes the two ends of a wire between guests. They are the caller's to close, once the guests are booted.
func Wire() (a, b *os.File, err error) {
	ones, others, err := pairs(1)
	if err != nil {
		return nil, nil, err
	}
	return ones[0], others[0], nil
}

// pairs makes connected pairs of sockets: one end for us, one for QEMU.
func pairs(n int) (ours, theirs []*os.File, err error) {
	for range n {
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			for k := range ours {
				err = errors.Join(err, ours[k].Close(), theirs[k].Close())
			}
			return nil, nil, fmt.Errorf("make a way to the guest: %w", err)
		}
		// Ours is waited for by the Go runtime, so that Close ends reading; QEMU sets its own as it likes.
		if err := unix.SetNonblock(fds[0], true); err != nil {
			return nil, nil, fmt.Errorf("make a way to the guest: %w", err)
		}
		ours, theirs = append(ours, os.NewFile(uintptr(fds[0]), "guest")), append(theirs, os.NewFile(uintptr(fds[1]), "guest"))
	}
	return ours, theirs, nil
}

// greet waits until the guest says hello.
func (g *Guest) greet(ctx context.Context) error {
	began := time.Now()
	g.conn = rpc.NewConn(g.channel, true)
	hello := make(chan *rpc.Stream, 1)
	go func() {
		if s, err := g.conn.Accept(); err == nil {
			hello <- s
		}
	}()
	select {
	case s := <-hello:
		g.Ready = Effort{time.Since(began), g.CPUTime()}
		if err := json.Unmarshal(s.Header(), &g.Hello); err != nil {
			return fmt.Errorf("understand the guest's greeting: %w", err)
		}
		if err := g.Hello.Check(); err != nil {
			return fmt.Errorf("greet the guest: %w", err)
		}
		return s.Close()
	case <-g.done:
		return g.failure(fmt.Sprintf("did not boot: QEMU ended with %v", g.state))
	case <-ctx.Done():
		return fmt.Errorf("boot a guest: %w", ctx.Err())
	case <-time.After(g.Machine.Patience):
		return g.failure(fmt.Sprintf("was not ready after %v, in which QEMU used %v of processor time", g.Machine.Patience, g.CPUTime().Round(time.Millisecond)))
	}
}

// failure is a *BootError with what the guest said last.
func (g *Guest) failure(why string) error {
	g.console.settle(g.done)
	return &BootError{Why: why, Last: g.console.last(lastLines), QEMU: strings.TrimSpace(g.console.qemu.String())}
}

// CPUTime is the processor time that QEMU has used.
func (g *Guest) CPUTime() time.Duration {
	if g.qemu == nil {
		return 0
	}
	select {
	case <-g.done:
		if g.state == nil {
			return 0
		}
		return g.state.SystemTime() + g.state.UserTime()
	default:
	}
	return processorTime(g.qemu.Pid)
}

// PID is the number of QEMU's process.
func (g *Guest) PID() int { return g.qemu.Pid }

// Done is closed when the guest has ended.
func (g *Guest) Done() <-chan struct{} { return g.done }

// Close ends the guest and waits until it has.
func (g *Guest) Close() error {
	g.close.Do(func() {
		if g.conn != nil {
			_ = g.conn.Close() // it returns nothing
		}
		_ = g.channel.Close() // it may be closed
		if g.qemu != nil {
			_ = g.qemu.Kill() // it may have ended
		}
		<-g.done
		_ = g.console.from.Close() // reading it ends
	})
	return nil
}

// RunScript boots a guest that runs the machine's script, and hands its output to each as it comes: the index of the program, and
// the message. It returns how each program that ran has ended. The error is a *BootError where the guest ended too early.
func RunScript(ctx context.Context, i image.Image, m Machine, each func(program int, kind rpc.MessageKind, content []byte)) ([]rpc.Exit, error) {
	if len(m.Script) == 0 {
		return nil, &InvalidError{"there is no script to run"}
	}
	g, err := start(ctx, i, m)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = g.Close() })
	defer stop()
	timer := time.AfterFunc(g.Machine.Patience, func() { _ = g.Close() })
	defer timer.Stop()
	exits, err := g.follow(each)
	if err != nil {
		switch {
		case ctx.Err() != nil:
			err = fmt.Errorf("run a script in a guest: %w", ctx.Err())
		default:
			err = g.failure(fmt.Sprintf("ended after %d of %d programs of its script: %v", len(exits), len(m.Script), err))
		}
	}
	return exits, errors.Join(err, g.Close())
}

func (g *Guest) follow(each func(program int, kind rpc.MessageKind, content []byte)) ([]rpc.Exit, error) {
	var exits []rpc.Exit
	for {
		kind, content, err := rpc.ReadMessage(g.channel)
		if err != nil {
			return exits, err
		}
		if kind != rpc.Exited {
			each(len(exits), kind, content)
			continue
		}
		var e rpc.Exit
		if err := json.Unmarshal(content, &e); err != nil {
			return exits, err
		}
		exits = append(exits, e)
		if e.Status != 0 || len(exits) == len(g.Machine.Script) {
			return exits, nil
		}
	}
}

var _ io.Closer = (*Guest)(nil)

// static returns nil for a program that needs nothing but the kernel.
func static(program string) error {
	l, err := image.ReadLinked(program)
	if err == nil && l.Loader != "" {
		err = errDynamic
	}
	if err != nil {
		return fmt.Errorf("bring %s into a guest: %w", program, err)
	}
	return nil
}

// initrd puts together what the guest finds in its root folder, in memory: there is no file that could be left behind.
func initrd(i image.Image, m Machine) (f *os.File, err error) {
	fd, err := unix.MemfdCreate("netdelta-guest", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make room for the guest's files: %w", err)
	}
	f = os.NewFile(uintptr(fd), "the guest's files")
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("put the guest's files together: %w", err), f.Close())
			f = nil
		}
	}()
	archives := []image.Archive{image.Base}
	for _, a := range m.Archives {
		archives = gather.Once(archives, a)
	}
	for _, a := range archives {
		if err := appendFile(f, i.ArchiveFile(a)); err != nil {
			return f, err
		}
	}
	root := image.NewRoot(f)
	err = root.Copy(m.Program, "/netdelta")
	for _, b := range m.Files {
		if err == nil {
			err = root.Copy(b.Host, b.Guest)
		}
	}
	if err == nil && len(m.Script) > 0 {
		var text []byte
		if text, err = json.Marshal(m.Script); err == nil {
			err = root.Text(wire.ScriptFile, 0o600, text)
		}
	}
	if err != nil {
		return f, err
	}
	return f, root.Close()
}

// align is where the kernel expects the next archive to begin.
const align = 4

func appendFile(to *os.File, path string) error {
	from, err := os.Open(path)
	if err != nil {
		return err
	}
	n, err := io.Copy(to, from)
	if rest := n % align; err == nil && rest > 0 {
		_, err = to.Write(make([]byte, align-rest))
	}
	return errors.Join(err, from.Close())
}
