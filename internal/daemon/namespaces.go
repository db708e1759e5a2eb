package daemon

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"netdelta/unit"
)

// live is the sandbox's thread: mount namespaces belong to threads, and what a thread starts is born in its own. Ending without
// unlocking ends the thread too, and with it the namespaces, unless a process still holds them.
func (h *Sandbox) live(size unit.Bytes, ready chan<- error) {
	runtime.LockOSThread()
	if unix.Gettid() == unix.Getpid() {
		// The process's first thread does not end before the process does. While this goroutine holds it, another one can't get it.
		defer runtime.UnlockOSThread()
		go h.live(size, ready)
		<-h.done
		return
	}
	defer close(h.done)
	if h.plain {
		ready <- h.prepare()
		for f := range h.work {
			f()
		}
		h.clear()
		return
	}
	first, err := settle(size)
	ready <- err
	if err != nil {
		return
	}
	for f := range h.work {
		f()
	}
	first.end()
	// What lies in the folder is given back now, not when the kernel removes the namespace.
	_ = unix.Unmount(Folder, unix.MNT_DETACH)
}

// settle gives the calling thread namespaces of its own, with an empty folder in memory and a first process. What is mounted
// in them is not seen outside.
func settle(size unit.Bytes) (*first, error) {
	anywhere()
	if err := unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_NEWIPC); err != nil {
		return nil, fmt.Errorf("make a mount namespace (it takes root, or a user namespace): %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_SLAVE|unix.MS_REC, ""); err != nil {
		return nil, fmt.Errorf("keep mounts from spreading: %w", err)
	}
	options := fmt.Sprintf("size=%d,mode=0755", int64(size))
	if err := unix.Mount("tmpfs", Folder, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		return nil, fmt.Errorf("mount a tmpfs of %v at %s: %w", size, Folder, err)
	}
	for _, place := range []struct{ name, hides string }{{temporary, ""}, {"shm", "/dev/shm"}} {
		folder := filepath.Join(Folder, place.name)
		if err := os.Mkdir(folder, 0o700); err != nil {
			return nil, err
		}
		if err := os.Chmod(folder, 0o777|os.ModeSticky); err != nil {
			return nil, err
		}
		if place.hides == "" {
			continue
		}
		err := unix.Mount(folder, place.hides, "", unix.MS_BIND, "")
		if err != nil && !errors.Is(err, unix.ENOENT) { // a machine without shared memory needs none hidden
			return nil, fmt.Errorf("put %s over %s: %w", folder, place.hides, err)
		}
	}
	return begin()
}

// anywhere lets the calling thread, and what it starts, run on every processor of this process's control group: the process
// itself may be kept away from those where it would be in the way of what is measured, and a program is what is measured.
func anywhere() {
	var all unix.CPUSet
	for cpu := range len(all) * 64 {
		all.Set(cpu)
	}
	_ = unix.SchedSetaffinity(0, &all) // where it may not, its programs run where it does
}

// temporary is the folder of a sandbox for what programs put into TMPDIR.
const temporary = "tmp"

// first is the first process of a sandbox's PID namespace. It does nothing but wait for its input to end, which it does when this
// process ends, however; and the kernel kills with it all that is in the namespace. A death signal of each program would not
// do: it reaches no grandchildren, and none that has become another user.
type first struct {
	cmd *exec.Cmd
	in  io.Closer
}

// begin starts the first process of a new PID namespace, into which all that this thread starts later is born.
func begin() (*first, error) {
	path, err := Look("cat")
	if err != nil {
		return nil, fmt.Errorf("start the first process of a PID namespace: %w", err)
	}
	pidfd := -1
	f := &first{cmd: exec.Command(path)}
	f.cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID, Pdeathsig: syscall.SIGKILL, PidFD: &pidfd}
	f.cmd.Dir = "/"
	f.cmd.Stdout = nil
	if f.in, err = f.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("start the first process of a PID namespace: %w", err)
	}
	if err := f.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the first process of a PID namespace: %w", err)
	}
	if pidfd < 0 {
		f.end()
		return nil, errors.New("start the first process of a PID namespace: this kernel has no pidfd; it takes Linux 5.8")
	}
	err = unix.Setns(pidfd, unix.CLONE_NEWPID)
	_ = unix.Close(pidfd) // nothing was written to it
	if err != nil {
		f.end()
		return nil, fmt.Errorf("enter a PID namespace: %w; it takes Linux 5.8", err)
	}
	showProcesses()
	return f, nil
}

// showProcesses has /proc tell of the processes of the namespace, by the numbers that they know themselves by. Only one of them
// can mount it. A machine that hides parts of its /proc lets no user namespace do so; there, the few programs that look
// themselves up by number don't find themselves.
func showProcesses() {
	if path, err := Look("mount"); err == nil {
		_ = exec.Command(path, "-t", "proc", "-o", "nosuid,nodev,noexec", "proc", "/proc").Run()
	}
}

// end ends the namespace with all that is left in it.
func (f *first) end() {
	_ = f.cmd.Process.Kill() // that it is dead already is as good
	_ = f.in.Close()
	_ = f.cmd.Wait() // it was killed
}
