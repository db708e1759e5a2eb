package rootless

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"netdelta/internal/netns"
)

// Variable marks the environment of a program that was started in a user namespace of its own. Its value is the number of
// the user outside.
const Variable = "NETDELTA_ROOTLESS"

// Entered tells whether this program was started in a user namespace made for it, and for which user.
func Entered() (uid int, entered bool) {
	uid, err := strconv.Atoi(os.Getenv(Variable))
	return uid, err == nil
}

// Lacking tells whether this program has not got the capabilities that a lab needs: CAP_SYS_ADMIN, to make namespaces, and
// CAP_NET_ADMIN, for what is in them.
func Lacking() (bool, error) {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData // each has 32 of the 64 capabilities
	if err := unix.Capget(&header, &sets[0]); err != nil {
		return false, fmt.Errorf("ask for the capabilities of this process: %w", err)
	}
	const needed = 1<<unix.CAP_SYS_ADMIN | 1<<unix.CAP_NET_ADMIN
	return sets[0].Effective&needed != needed, nil
}

// Attributes are for a process that starts as root of a new user namespace, to which only the present user is known,
// and in a network namespace that belongs to it: from there it can come back after it was in another one.
func Attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
	}
}

// Environment is env with the mark that Entered looks for.
func Environment(env []string) []string {
	return append(env[:len(env):len(env)], fmt.Sprintf("%s=%d", Variable, os.Geteuid()))
}

// Try tells whether users without root can make user namespaces, as far as root can find that out. The error is
// a *testbed.PermissionError where they can't.
func Try() error {
	// The kernel makes the namespaces first and then fails to find the program.
	p, err := os.StartProcess("/proc/self/fd/none", []string{"none"}, &os.ProcAttr{Sys: Attributes()})
	if err == nil {
		_, err = p.Wait()
		return err
	}
	if !errors.Is(err, os.ErrNotExist) {
		return Refusal(err)
	}
	if forbidden("/proc") {
		return Refused(unix.EPERM)
	}
	return nil
}

// Verify tells, in a user namespace, whether the capabilities that it gives are good for anything: some security modules let
// everybody make user namespaces and grant nothing in them. The error is then a *testbed.PermissionError.
func Verify() error {
	n, err := netns.New(nil)
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.ENOSPC) {
		return Refused(err)
	}
	if err != nil {
		return err
	}
	return n.Close()
}
