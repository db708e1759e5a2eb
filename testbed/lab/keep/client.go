package keep

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"netdelta/internal/owner"
	"netdelta/internal/suggest"
	"netdelta/testbed/rpc"
)

// How long a keeper may take: to answer, to replace a network or remove a lab, and to end once it is killed.
const (
	answerPatience = 5 * time.Second
	workPatience   = 30 * time.Second
	killPatience   = 5 * time.Second
	retryPause     = 20 * time.Millisecond
)

// List tells of all labs, and removes what is recorded of those whose keepers have died.
func (f *Folder) List(ctx context.Context) ([]Status, error) {
	if _, err := f.Clean(); err != nil {
		return nil, err
	}
	names, err := f.Names()
	if err != nil {
		return nil, err
	}
	var all []Status
	for _, name := range names {
		s, err := f.Status(ctx, name)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			s = Status{Name: name, Trouble: err.Error()}
		}
		all = append(all, s)
	}
	return all, nil
}

// Choose finds the lab that is meant: the named one, or without a name the only one there is. The error is an *UnknownError.
func (f *Folder) Choose(name string) (string, error) {
	names, err := f.Names()
	switch {
	case err != nil:
		return "", err
	case name != "" && slices.Contains(names, name):
		return name, nil
	case len(names) == 0:
		return "", &UnknownError{"there is no lab; make one with netdelta lab up NETWORK"}
	case name == "" && len(names) == 1:
		return names[0], nil
	case name == "":
		return "", &UnknownError{"there are several labs; choose one with --name: " + strings.Join(names, ", ")}
	}
	if near, ok := suggest.Nearest(name, names); ok {
		return "", &UnknownError{fmt.Sprintf("there is no lab %.64q: did you mean %q?", name, near)}
	}
	return "", &UnknownError{fmt.Sprintf("there is no lab %.64q: there are %s", name, strings.Join(names, ", "))}
}

// Status asks a lab's keeper.
func (f *Folder) Status(ctx context.Context, name string) (Status, error) {
	return ask[Status](ctx, f, name, opStatus, nil, answerPatience, nil)
}

// Swap replaces the network of a lab under what runs in its pods.
func (f *Folder) Swap(ctx context.Context, name, network string) (Status, error) {
	return ask[Status](ctx, f, name, opSwap, network, workPatience, nil)
}

// Down removes a lab and waits until its keeper has ended. A keeper that does not answer is killed, and the kernel removes the
// lab. That there is no such lab any more is no error.
func (f *Folder) Down(ctx context.Context, name string) error {
	for deadline := time.Now().Add(answerPatience); ; time.Sleep(retryPause) {
		lock, err := f.lock(name)
		if err == nil {
			return f.forget(name, lock)
		}
		if !errors.Is(err, errTaken) {
			return err
		}
		keeper, err := f.keeper(name)
		if err == nil {
			err = f.end(ctx, name, keeper)
			_ = unix.Close(keeper)
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("take down lab %s: it is locked but can't be reached: it is being built; try again: %w", name, err)
		}
	}
}

// keeper opens the process that holds a lab.
func (f *Folder) keeper(name string) (pidfd int, err error) {
	conn, err := f.dial(name)
	if err != nil {
		return -1, err
	}
	defer func() { _ = conn.Close() }()
	_, pidfd, err = owner.Peer(conn)
	return pidfd, err
}

// end asks a keeper to remove its lab, and kills it if it does not.
func (f *Folder) end(ctx context.Context, name string, keeper int) error {
	// A keeper that hangs is told from one that works by its answer to a lesser question.
	_, err := f.Status(ctx, name)
	if err == nil {
		_, err = ask[any](ctx, f, name, opDown, nil, workPatience, nil)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err == nil && owner.Ended(keeper, answerPatience) {
		return nil
	}
	if err := unix.PidfdSendSignal(keeper, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("take down lab %s: kill its keeper: %w", name, err)
	}
	if !owner.Ended(keeper, killPatience) {
		return fmt.Errorf("take down lab %s: its keeper was killed and is there still: it waits inside the kernel", name)
	}
	return f.buried(name)
}

// buried removes what is recorded of a lab whose keeper has ended, if it did not do so itself.
func (f *Folder) buried(name string) error {
	lock, err := f.lock(name)
	if errors.Is(err, errTaken) {
		return nil // somebody has made another lab of this name
	}
	if err != nil {
		return err
	}
	return f.forget(name, lock)
}

// dial opens a connection to a keeper. Where there is none it tells a lab that is gone from one that is being built.
func (f *Folder) dial(name string) (*net.UnixConn, error) {
	return at(f.file(name, socketEnd), func(address *net.UnixAddr) (*net.UnixConn, error) { return net.DialUnix("unix", nil, address) })
}

// ask greets a keeper, sends a request and returns the answer. The connection stays open while use has the answer.
func ask[R any](ctx context.Context, f *Folder, name, op string, args any, patience time.Duration, use func(R) error) (R, error) {
	within, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	value, err := exchange(within, f, name, op, args, use)
	var unknown *UnknownError
	switch {
	case err == nil, errors.As(err, &unknown):
		return value, err
	case ctx.Err() != nil:
		err = ctx.Err()
	case within.Err() != nil:
		err = fmt.Errorf("its keeper does not answer; netdelta lab down --name %s removes the lab", name)
	case errors.Is(err, syscall.ENOENT), errors.Is(err, syscall.ECONNREFUSED):
		err = errors.New("it can't be reached: it is being built, or has just ended")
	}
	return value, fmt.Errorf("lab %s: %w", name, err)
}

func exchange[R any](ctx context.Context, f *Folder, name, op string, args any, use func(R) error) (value R, err error) {
	dialled, err := f.dial(name)
	if err != nil {
		return value, err
	}
	conn := rpc.NewConn(dialled, true)
	defer func() { _ = conn.Close() }() // it never fails
	hello, err := rpc.Ask[rpc.Greeting](ctx, conn, rpc.OpHello, nil)
	if err != nil {
		return value, err
	}
	if err := hello.Check(); err != nil {
		return value, fmt.Errorf("its keeper is of another netdelta: %w, or take the lab down: netdelta lab down --name %s", err, name)
	}
	value, err = rpc.Ask[R](ctx, conn, op, args)
	if err != nil || use == nil {
		return value, fromKeeper(err)
	}
	return value, use(value)
}

// fromKeeper gives an error that came from a keeper its type again.
func fromKeeper(err error) error {
	if e, ok := errors.AsType[*rpc.Error](err); ok && e.Kind == kindUnknown {
		return &UnknownError{e.Text}
	}
	return err
}

// Door leads into a pod or node of a lab. It holds the namespaces until Close.
type Door struct {
	name      string
	user, net *os.File
	mark      string
}

// Enter opens the door of a pod, a node or the switch. The error for an unknown name is an *UnknownError.
func (f *Folder) Enter(ctx context.Context, name, where string) (*Door, error) {
	d := &Door{name: where}
	_, err := ask(ctx, f, name, opEnter, where, answerPatience, func(e entrance) (err error) {
		d.mark = e.Mark
		if d.user, err = os.Open(e.User); err == nil {
			d.net, err = os.Open(e.Network)
		}
		return err
	})
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// Close lets go of the namespaces.
func (d *Door) Close() error {
	var err error
	for _, f := range []*os.File{d.user, d.net} {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
	}
	return err
}

// Exec goes through the door and becomes another program, with the terminal and all streams of this one, and so does not return
// but with an error. The program's environment gets the lab's mark: it ends with the lab.
func (d *Door) Exec(path string, argv, env []string) error {
	env = slices.DeleteFunc(slices.Clone(env), func(v string) bool { return strings.HasPrefix(v, owner.Variable+"=") })
	env = append(env, owner.Variable+"="+d.mark)
	home, err := inside(d.user)
	if err != nil {
		return fmt.Errorf("enter %s: %w", d.name, err)
	}
	if !home {
		return d.execInUserNamespace(path, argv, env)
	}
	// The thread that calls execve is the one that lives on, where it is.
	runtime.LockOSThread()
	if err := unix.Setns(int(d.net.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("enter %s: %w", d.name, err)
	}
	if err := unix.Exec(path, argv, env); err != nil {
		return &StartError{Path: path, Err: err}
	}
	return nil
}

// StartError says that a program could not be started in a pod.
type StartError struct {
	Path string
	Err  error
}

// Error implements error.
func (e *StartError) Error() string { return fmt.Sprintf("start %s: %v", e.Path, e.Err) }

// Unwrap gives the kernel's error.
func (e *StartError) Unwrap() error { return e.Err }

// execInUserNamespace has nsenter do it: only a process with one thread may change its user namespace, and a Go program has
// several from the start.
func (d *Door) execInUserNamespace(path string, argv, env []string) error {
	nsenter, err := exec.LookPath("nsenter")
	if err != nil {
		return fmt.Errorf("enter %s: a lab that was made without root is entered by the program nsenter: %w; install the package util-linux", d.name, err)
	}
	args := []string{"nsenter", "--preserve-credentials", "--user=" + passed(d.user), "--net=" + passed(d.net), "--", path}
	for _, f := range []*os.File{d.user, d.net} {
		if _, err := unix.FcntlInt(f.Fd(), unix.F_SETFD, 0); err != nil {
			return fmt.Errorf("enter %s: hand a namespace over to nsenter: %w", d.name, err)
		}
	}
	if err := unix.Exec(nsenter, append(args, argv[1:]...), env); err != nil {
		return fmt.Errorf("enter %s: start %s: %w", d.name, nsenter, err)
	}
	return nil
}

// passed is the path of an inherited descriptor.
func passed(f *os.File) string { return fmt.Sprintf("/proc/self/fd/%d", f.Fd()) }

// inside tells whether this process is in a user namespace.
func inside(user *os.File) (bool, error) {
	own, err := os.Stat("/proc/self/ns/user")
	if err != nil {
		return false, err
	}
	theirs, err := user.Stat()
	if err != nil {
		return false, err
	}
	return os.SameFile(own, theirs), nil
}
