package keep

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"netdelta/internal/suggest"
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
	a, _, err := f.ask(ctx, name, request{Do: tellStatus}, answerPatience)
	if err != nil || a.Status == nil {
		return Status{}, err
	}
	return *a.Status, nil
}

// Swap replaces the network of a lab under what runs in its pods.
func (f *Folder) Swap(ctx context.Context, name, network string) (Status, error) {
	a, _, err := f.ask(ctx, name, request{Do: swap, Network: network}, workPatience)
	if err != nil || a.Status == nil {
		return Status{}, err
	}
	return *a.Status, nil
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
	pid, err := peer(conn)
	if err != nil {
		return -1, err
	}
	// The connection was taken by its socket, so the process lives, or died just now; its number is not another's yet.
	return unix.PidfdOpen(pid, 0)
}

// end asks a keeper to remove its lab, and kills it if it does not.
func (f *Folder) end(ctx context.Context, name string, keeper int) error {
	// A keeper that hangs is told from one that works by its answer to a lesser question.
	_, err := f.Status(ctx, name)
	if err == nil {
		_, _, err = f.ask(ctx, name, request{Do: end}, workPatience)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err == nil && ended(keeper, answerPatience) {
		return nil
	}
	if err := unix.PidfdSendSignal(keeper, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("take down lab %s: kill its keeper: %w", name, err)
	}
	if !ended(keeper, killPatience) {
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

// ended waits for the end of a process.
func ended(pidfd int, patience time.Duration) bool {
	for deadline := time.Now().Add(patience); ; {
		left := time.Until(deadline)
		if left <= 0 {
			return false
		}
		if n, err := unix.Poll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}, int(left.Milliseconds())+1); n > 0 {
			return true
		} else if err != nil && !errors.Is(err, unix.EINTR) {
			return false
		}
	}
}

// dial opens a connection to a keeper. Where there is none it tells a lab that is gone from one that is being built.
func (f *Folder) dial(name string) (*net.UnixConn, error) {
	return at(f.file(name, socketEnd), func(address *net.UnixAddr) (*net.UnixConn, error) { return net.DialUnix("unix", nil, address) })
}

// peer returns the PID of the process that made the socket. The PID can't be reused while the process lives, and it lives as long
// as it holds the socket.
func peer(conn *net.UnixConn) (pid int, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Ucred
	controlErr := raw.Control(func(fd uintptr) { cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err := errors.Join(controlErr, err); err != nil {
		return 0, fmt.Errorf("ask whose socket it is: %w", err)
	}
	return int(cred.Pid), nil
}

// ask sends a request and returns the answer, with the descriptors that came with it.
func (f *Folder) ask(ctx context.Context, name string, r request, patience time.Duration) (answer, []*os.File, error) {
	fail := func(err error) (answer, []*os.File, error) {
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			err = fmt.Errorf("its keeper does not answer; netdelta lab down --name %s removes the lab", name)
		case errors.Is(err, syscall.ENOENT), errors.Is(err, syscall.ECONNREFUSED):
			err = errors.New("it can't be reached: it is being built, or has just ended")
		}
		return answer{}, nil, fmt.Errorf("lab %s: %w", name, err)
	}
	conn, err := f.dial(name)
	if err != nil {
		return fail(err)
	}
	defer func() { _ = conn.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now()) })
	defer stop()
	if err := errors.Join(conn.SetDeadline(time.Now().Add(patience)), tell(conn, r), conn.CloseWrite()); err != nil {
		return fail(err)
	}
	var a answer
	files, err := hear(conn, &a)
	switch {
	case ctx.Err() != nil:
		return fail(errors.Join(ctx.Err(), closeAll(files)))
	case err != nil:
		return fail(err)
	case a.Greeting.Check() != nil:
		return fail(errors.Join(fmt.Errorf("its keeper is of another netdelta: %w, or take the lab down: netdelta lab down --name %s", a.Greeting.Check(), name), closeAll(files)))
	case a.Error != "" && a.Unknown:
		return answer{}, nil, errors.Join(&UnknownError{a.Error}, closeAll(files))
	case a.Error != "":
		return fail(errors.Join(errors.New(a.Error), closeAll(files)))
	}
	return a, files, nil
}
