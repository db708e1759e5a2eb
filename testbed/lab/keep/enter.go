package keep

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"netdelta/internal/owner"
)

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
