// Package owner marks processes and directories with the program that made them, so that what a killed program left can be
// told from what a running one uses.
package owner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"netdelta/internal/procfile"
	"netdelta/result"
)

// Owner is one running program: its number, when it started, and where those two mean something.
type Owner struct {
	Boot  string // first digits of the kernel's boot id: numbers start anew with each boot
	Space uint64 // the namespace of process numbers
	PID   int
	Start uint64 // in clock ticks since the boot
}

// Variable is the name of the environment variable that carries a mark.
const Variable = "NETDELTA_LAB"

// Self is this program.
func Self() (Owner, error) {
	here, err := where()
	if err != nil {
		return Owner{}, err
	}
	here.PID = os.Getpid()
	here.Start, err = startOf(here.PID)
	return here, err
}

// where is an Owner without a process.
func where() (Owner, error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return Owner{}, fmt.Errorf("read the kernel's boot id: %w", err)
	}
	st, err := os.Stat("/proc/self/ns/pid")
	if err != nil {
		return Owner{}, fmt.Errorf("look at the namespace of process numbers: %w", err)
	}
	if len(boot) < 8 {
		return Owner{}, errors.New("read the kernel's boot id: it is too short")
	}
	return Owner{Boot: string(boot[:8]), Space: st.Sys().(*syscall.Stat_t).Ino}, nil
}

// String is the mark, which Parse reads. It has no slash and no space.
func (o Owner) String() string { return fmt.Sprintf("%s-%d-%d-%d", o.Boot, o.Space, o.PID, o.Start) }

// Parse reads a mark at the start of s, up to its end or a dash after it.
func Parse(s string) (Owner, error) {
	parts := strings.SplitN(s, "-", 5)
	if len(parts) < 4 || len(parts[0]) != 8 {
		return Owner{}, fmt.Errorf("%q is no owner's mark", s)
	}
	space, err1 := strconv.ParseUint(parts[1], 10, 64)
	pid, err2 := strconv.Atoi(parts[2])
	start, err3 := strconv.ParseUint(parts[3], 10, 64)
	if err := errors.Join(err1, err2, err3); err != nil || pid <= 0 {
		return Owner{}, fmt.Errorf("%q is no owner's mark", s)
	}
	return Owner{Boot: parts[0], Space: space, PID: pid, Start: start}, nil
}

// Dead tells whether the owner has certainly ended. An owner that can't be seen from here, in another container say, is not
// taken for dead.
func (o Owner) Dead() bool {
	here, err := where()
	if err != nil {
		return false
	}
	if o.Boot != here.Boot {
		return true
	}
	if o.Space != here.Space {
		return false
	}
	start, err := startOf(o.PID)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return true
	}
	return err == nil && start != o.Start
}

// startOf reads when a process started; one that has ended but was not waited for counts as gone.
func startOf(pid int) (uint64, error) {
	_, fields, err := procfile.Stat("/proc", pid)
	if err != nil {
		return 0, err
	}
	if state := fields[procfile.StatState]; state == "Z" || state == "X" {
		return 0, os.ErrNotExist
	}
	return strconv.ParseUint(fields[procfile.StatStart], 10, 64)
}

// Process is a process that carries a mark.
type Process struct {
	PID   int
	Name  string
	Owner Owner
	// Mark is the whole value of the variable, which may go on after the owner.
	Mark string
}

// Processes lists all processes that carry a mark and whose environment may be read, this program's own among them.
func Processes() ([]Process, error) {
	pids, err := procfile.Processes("/proc")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var found []Process
	for _, pid := range pids {
		if p, ok := ProcessOf(pid); ok {
			found = append(found, p)
		}
	}
	return found, nil
}

// ProcessOf looks at one process; ok is false where it is gone, carries no mark, or may not be looked at.
func ProcessOf(pid int) (p Process, ok bool) {
	mark := markOf(pid)
	if mark == "" {
		return Process{}, false
	}
	o, err := Parse(mark)
	if err != nil {
		return Process{}, false
	}
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	if err != nil {
		return Process{}, false
	}
	return Process{PID: pid, Name: strings.TrimSpace(string(name)), Owner: o, Mark: mark}, true
}

// Proven tells whether a process that carries a mark is certainly one that netdelta started in a lab. Anybody can set a variable, or
// inherit it from a shell in a lab; a process of a lab also runs as the same user as this program, in a network namespace other than
// this program's, and has started after its owner.
func (p Process) Proven() bool {
	theirs, err := os.Stat(fmt.Sprintf("/proc/%d/ns/net", p.PID))
	if err != nil {
		return false
	}
	here, err := os.Stat("/proc/self/ns/net")
	if err != nil || os.SameFile(theirs, here) {
		return false
	}
	dir, err := os.Stat(fmt.Sprintf("/proc/%d", p.PID))
	if err != nil || int(dir.Sys().(*syscall.Stat_t).Uid) != os.Geteuid() {
		return false
	}
	start, err := startOf(p.PID)
	return err == nil && start >= p.Owner.Start
}

// execPatience is how long the environment of a process that begins a program may take to be there.
const execPatience = 100 * time.Millisecond

// markOf is the mark in a process's environment, "" where there is none or it can't be read. While a process begins a program,
// its environment reads as empty for a moment: the old one is gone and the new one not there.
func markOf(pid int) string {
	env, err := environment(pid)
	for end := time.Now().Add(execPatience); err == nil && len(env) == 0 && runsProgram(pid) && time.Now().Before(end); {
		time.Sleep(100 * time.Microsecond)
		env, err = environment(pid)
	}
	if err != nil {
		return ""
	}
	for v := range bytes.SplitSeq(env, []byte{0}) {
		if mark, ok := bytes.CutPrefix(v, []byte(Variable+"=")); ok {
			return string(mark)
		}
	}
	return ""
}

// environment reads a process's environment, in one piece: between two reads it may be gone.
func environment(pid int) ([]byte, error) {
	const usual = 4 << 10 // bytes
	f, err := procfile.Open(fmt.Sprintf("/proc/%d/environ", pid), usual)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	return f.Read()
}

// runsProgram tells whether a process is no thread of the kernel and has not ended.
func runsProgram(pid int) bool {
	_, fields, err := procfile.Stat("/proc", pid)
	if err != nil || fields[procfile.StatState] == "Z" || fields[procfile.StatState] == "X" {
		return false
	}
	flags, err := strconv.ParseUint(fields[procfile.StatFlags], 10, 64)
	return err == nil && flags&procfile.KernelThread == 0
}

const tempPrefix = "netdelta-"

// TempDir makes a directory for temporary files that carries this program's mark.
func TempDir() (string, error) {
	self, err := Self()
	if err != nil {
		return "", err
	}
	return os.MkdirTemp("", tempPrefix+self.String()+"-*")
}

// TempDirs lists the directories that TempDir made for programs that have died. Another user's are left out.
func TempDirs() ([]string, error) {
	entries, err := os.ReadDir(os.TempDir())
	if err != nil {
		return nil, fmt.Errorf("list temporary directories: %w", err)
	}
	var found []string
	for _, e := range entries {
		rest, ok := strings.CutPrefix(e.Name(), tempPrefix)
		if !ok || !e.IsDir() {
			continue
		}
		o, err := Parse(rest)
		if err != nil || !o.Dead() {
			continue
		}
		info, err := e.Info()
		if err != nil || result.OwnerOf(info) != os.Geteuid() {
			continue
		}
		found = append(found, filepath.Join(os.TempDir(), e.Name()))
	}
	return found, nil
}

// RuntimeFolder is the place of a folder of this user's in which no other can have put anything, and which ends with the boot: below
// $XDG_RUNTIME_DIR, for root below /run, and failing that in the folder for temporary files, with the user's number. Whoever opens it has to
// look whose it is.
func RuntimeFolder(getenv func(string) string, name string) string {
	uid := os.Geteuid()
	runtime := getenv("XDG_RUNTIME_DIR")
	if uid == 0 {
		// The variable depends on how root logged in; the place must not.
		runtime = "/run"
	}
	// A user who became another one by su has the other's variable still.
	if info, err := os.Stat(runtime); err == nil && filepath.IsAbs(runtime) && result.OwnerOf(info) == uid && unix.Access(runtime, unix.W_OK) == nil {
		return filepath.Join(runtime, name)
	}
	return filepath.Join(os.TempDir(), fmt.Sprintf("%s-%d", name, uid))
}

// StateVariable is the environment variable that names the folder of what programs keep for the next time.
const StateVariable = "XDG_STATE_HOME"

// StateFolder is the place of a folder of what this user's programs keep for the next time: below $XDG_STATE_HOME, or .local/state of the home
// folder. Whoever opens it has to look whose it is (CheckFolder).
func StateFolder(getenv func(string) string, name string) (string, error) {
	state := getenv(StateVariable)
	if !filepath.IsAbs(state) {
		home := getenv("HOME")
		if !filepath.IsAbs(home) {
			return "", fmt.Errorf("find a place to keep %s for the next time: there is no home folder; set %s or HOME", name, StateVariable)
		}
		state = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(state, "netdelta", name), nil
}

// Peer is the process that made the socket at a connection's other end: its number, and a file descriptor by which the number can't
// become another's, for the caller to close.
func Peer(conn *net.UnixConn) (pid, fd int, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, -1, err
	}
	var failed error
	err = raw.Control(func(s uintptr) {
		var who *unix.Ucred
		if who, failed = unix.GetsockoptUcred(int(s), unix.SOL_SOCKET, unix.SO_PEERCRED); failed != nil {
			return
		}
		pid = int(who.Pid)
		fd, failed = unix.PidfdOpen(pid, 0)
	})
	if err := errors.Join(err, failed); err != nil {
		return 0, -1, fmt.Errorf("find the process behind the socket %s: %w", conn.RemoteAddr(), err)
	}
	return pid, fd, nil
}

// Ended waits for the end of a process, and tells whether it came.
func Ended(pidfd int, patience time.Duration) bool {
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

// lockAgain is how often a lock that another program has is tried.
const lockAgain = 50 * time.Millisecond

// Lock waits until no other program has the lock of a file, which it makes if need be. The lock ends with unlock, or with this program.
func Lock(ctx context.Context, path string) (unlock func() error, err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return f.Close, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return nil, errors.Join(&os.PathError{Op: "lock", Path: path, Err: err}, f.Close())
		}
		select {
		case <-time.After(lockAgain):
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), f.Close())
		}
	}
}
