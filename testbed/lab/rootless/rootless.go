// Package rootless lets users without root build labs: it starts this program again as root of a user namespace, in which it
// may make network namespaces and rule over what is in them, and over nothing else of the machine.
package rootless

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"netdelta/internal/netns"
	"netdelta/testbed"
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

// Refused turns what the kernel said when a user namespace, or the first thing in it, was to be made into an error that names
// what refused it, and the fixes.
func Refused(err error) *testbed.PermissionError { return refusedBy("/proc", err) }

// forbidden tells whether a setting keeps users without root from user namespaces.
func forbidden(proc string) bool {
	return setting(proc, "kernel/unprivileged_userns_clone") == "0" || on(setting(proc, "kernel/apparmor_restrict_unprivileged_userns"))
}

const asRoot = "run it as root"

// refusedBy is Refused with the folder that /proc is mounted on.
func refusedBy(proc string, err error) *testbed.PermissionError {
	refused := &testbed.PermissionError{Doing: "build a lab without root", Err: err}
	switch {
	case missing(filepath.Join(proc, "self/ns/user")):
		refused.Need, refused.Fix = "a kernel with user namespaces (CONFIG_USER_NS)", asRoot
	case errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EUSERS):
		refused.Need, refused.Fix = limit(proc)
	case setting(proc, "kernel/unprivileged_userns_clone") == "0":
		refused.Need = "user namespaces for ordinary users, which kernel.unprivileged_userns_clone=0 forbids"
		refused.Fix = asRoot + ", or allow them with sysctl -w kernel.unprivileged_userns_clone=1"
	case on(setting(proc, "kernel/apparmor_restrict_unprivileged_userns")):
		refused.Need = "user namespaces for ordinary users, which AppArmor forbids (kernel.apparmor_restrict_unprivileged_userns)"
		refused.Fix = asRoot + ", give this program an AppArmor profile with the rule \"userns,\", or allow them with sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"
	case filtered(proc):
		refused.Need = "user namespaces, which a filter of system calls (seccomp) forbids: this seems to be a container"
		refused.Fix = "run it outside the container, or start the container with --privileged or --security-opt seccomp=unconfined"
	default:
		refused.Need = "user namespaces, which a security module (SELinux, say), a chroot or the kernel forbids"
		refused.Fix = asRoot
	}
	return refused
}

// limit says which number of namespaces is exhausted. Each user namespace has limits of its own, and so has each above it
// count too; the values are those that hold here.
func limit(proc string) (need, fix string) {
	for _, kind := range []string{"user", "net"} {
		name := "max_" + kind + "_namespaces"
		if most, err := strconv.Atoi(setting(proc, "user/"+name)); err == nil && most == 0 {
			return fmt.Sprintf("namespaces for this user, which user.%s=0 forbids", name),
				fmt.Sprintf("%s, or allow them with sysctl -w user.%s=1000", asRoot, name)
		}
	}
	return "more namespaces than user.max_user_namespaces and user.max_net_namespaces leave to this user, or user namespaces nested less deep",
		"end programs that hold some (containers, browsers), raise the limits with sysctl -w, or " + asRoot
}

// setting is the value of a setting of the kernel, "" for one that it has not got or does not tell.
func setting(proc, path string) string {
	value, err := os.ReadFile(filepath.Join(proc, "sys", path))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(value))
}

func on(value string) bool { return value != "" && value != "0" }

func missing(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// filtered tells whether system calls of this process go through a filter.
func filtered(proc string) bool {
	status, err := os.ReadFile(filepath.Join(proc, "self/status"))
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(status)) {
		if mode, ok := strings.CutPrefix(line, "Seccomp:"); ok {
			return strings.TrimSpace(mode) == "2"
		}
	}
	return false
}

// Run starts this program again as root of a new user namespace, in the same folder, with the given arguments, standard output
// and otherwise the same streams and environment, and waits for its end. Signals that this process gets are passed on. If this
// process is killed, so is the other. Where the kernel refuses the namespace the error is a *testbed.PermissionError.
func Run(args []string, stdout *os.File) (*os.ProcessState, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program's file: %w", err)
	}
	attr := Attributes()
	// A terminal signals all of its foreground's process group: in a group of its own the other process gets each signal once,
	// from here. It reads nothing from the terminal; and with SIGTTOU ignored it may write there whatever the settings.
	attr.Setpgid = true
	signal.Ignore(syscall.SIGTTOU)
	defer signal.Reset(syscall.SIGTTOU)
	attr.Pdeathsig = syscall.SIGKILL
	// It means the end of the thread that started the process.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	signals := passedOn()
	received := make(chan os.Signal, 64)
	signal.Notify(received, signals...)
	defer signal.Stop(received)
	process, err := os.StartProcess(self, append(os.Args[:1:1], args...), &os.ProcAttr{
		Env: Environment(os.Environ()), Files: []*os.File{os.Stdin, stdout, os.Stderr}, Sys: attr,
	})
	if err != nil {
		return nil, Refusal(err)
	}
	done := make(chan struct{})
	defer close(done)
	go passOn(received, process, done)
	ended, err := process.Wait()
	if err != nil {
		return nil, fmt.Errorf("wait for this program in its user namespace: %w", err)
	}
	return ended, nil
}

// Refusal is the error of a process that could not be started with Attributes: where the kernel gives no user namespaces it is a
// *testbed.PermissionError.
func Refusal(err error) error {
	for _, e := range []error{unix.EPERM, unix.EACCES, unix.ENOSPC, unix.EUSERS, unix.EINVAL} {
		if errors.Is(err, e) {
			return Refused(err)
		}
	}
	return fmt.Errorf("start this program again in a user namespace: %w", err)
}

// passedOn are the signals for programs like this one. Those that are ignored stay so.
func passedOn() []os.Signal {
	all := []os.Signal{
		syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH,
		syscall.SIGTSTP, syscall.SIGCONT,
	}
	return slices.DeleteFunc(all, signal.Ignored)
}

// passOn sends signals on until done is closed. When this process is to stop, it does so after the other.
func passOn(received <-chan os.Signal, process *os.Process, done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		case s := <-received:
			_ = process.Signal(s) // it may just have ended
			if s == syscall.SIGTSTP {
				_ = unix.Kill(os.Getpid(), unix.SIGSTOP)
			}
		}
	}
}

// signalPatience is how long a signal to this process itself may take.
const signalPatience = time.Second

// Pass ends this process the way in which another one ended: by its exit status, which it returns, or by its signal.
func Pass(ended *os.ProcessState) (status int) {
	wait, ok := ended.Sys().(syscall.WaitStatus)
	if !ok || !wait.Signaled() {
		return ended.ExitCode()
	}
	signal.Reset(wait.Signal())
	if err := unix.Kill(os.Getpid(), wait.Signal()); err == nil {
		time.Sleep(signalPatience)
	}
	return 128 + int(wait.Signal())
}
