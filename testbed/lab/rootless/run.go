package rootless

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

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
