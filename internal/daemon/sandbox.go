package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"netdelta/internal/machine"
	"netdelta/internal/procfile"
	"netdelta/unit"
)

// Folder is where a sandbox is, for those who see it, unless it is a folder among others. It hides what the machine has there, sockets of
// its own daemons among it.
const Folder = "/run"

// FolderVariable is the environment variable with the folder below which sandboxes are plain folders: in a container that may make no
// namespaces, and that holds nothing else. It must be one in memory.
const FolderVariable = "NETDELTA_HOMES"

// Spare is what must stay free of the machine's memory next to sandboxes.
const Spare = 256 * unit.MiB

// Sandbox is a place for programs: a folder in memory, of limited size, in namespaces of mounts, processes and System V's shared
// memory that only what is started in it shares. The kernel ends its processes with this one, also those that have taken
// another user's name or left their parents, and removes the rest with the last of them. It may be used by several
// goroutines.
//
// Where FolderVariable says so, it is but a folder, of no limited size. Its processes are then ended when it is closed, those that have
// left their parents by the mark in their environment; what is left of a killed process's is for the container's first one to end
// (EndOrphans).
type Sandbox struct {
	folder string
	groups string // where control groups are
	plain  bool
	work   chan func()
	done   chan struct{} // closed when the thread is gone

	gate   sync.RWMutex // held for reading while something is done in the sandbox
	closed bool

	mu       sync.Mutex
	daemons  []*Daemon
	children []*Daemon // started by Run and not over yet
}

// ErrClosed is the error of a sandbox that was closed.
var ErrClosed = errors.New("the sandbox of daemons is closed")

// Open makes a sandbox for at most size bytes of data. It refuses when the machine has not that much memory to give.
func Open(size unit.Bytes) (*Sandbox, error) {
	free, err := machine.FreeMemory()
	if err != nil {
		return nil, err
	}
	if free < size+Spare {
		return nil, fmt.Errorf("a folder of %v in memory for a service: %v is free, and %v of it have to stay so; end other programs or ask for less", size, free, Spare)
	}
	h := &Sandbox{folder: Folder, groups: procfile.Groups, work: make(chan func()), done: make(chan struct{})}
	if above := os.Getenv(FolderVariable); above != "" {
		if h.folder, err = os.MkdirTemp(above, "home-"); err != nil {
			return nil, fmt.Errorf("a folder in memory for a service: %w", err)
		}
		h.plain = true
	}
	ready := make(chan error, 1)
	go h.live(size, ready)
	if err := <-ready; err != nil {
		<-h.done
		return nil, fmt.Errorf("a folder in memory for a service: %w", err)
	}
	return h, nil
}

// Path is where a file of the sandbox is seen from within; of no name, the sandbox's folder.
func (h *Sandbox) Path(name ...string) string { return filepath.Join(h.folder, filepath.Join(name...)) }

// Do runs f where the sandbox's folder is seen. It must not block for long, nor use the sandbox's methods: everything of
// the sandbox waits for it.
func (h *Sandbox) Do(f func() error) error {
	h.gate.RLock()
	defer h.gate.RUnlock()
	if h.closed {
		return ErrClosed
	}
	result := make(chan error, 1)
	h.work <- func() { result <- f() }
	return <-result
}

// Write writes a file of the sandbox, with the folders above it. Its name is relative to the sandbox's folder. The owner is a user of this
// machine, "" for this process's user.
func (h *Sandbox) Write(name string, data []byte, mode fs.FileMode, owner string) error {
	return h.Do(func() error {
		full := h.Path(name)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			return fmt.Errorf("write %s: %w", full, err)
		}
		if err := os.WriteFile(full, data, mode); err != nil {
			return fmt.Errorf("write %s: %w", full, filled(err))
		}
		return own(full, owner)
	})
}

// filled says of a full sandbox what to do.
func filled(err error) error {
	if errors.Is(err, unix.ENOSPC) {
		return fmt.Errorf("%w: the service needs more than the memory that was set aside for it", err)
	}
	return err
}

// Folder makes a folder of the sandbox, with those above it. Its name and owner are as in Write.
func (h *Sandbox) Folder(name, owner string) error {
	return h.Do(func() error {
		full := h.Path(name)
		if err := os.MkdirAll(full, 0o755); err != nil {
			return fmt.Errorf("make folder %s: %w", full, err)
		}
		return own(full, owner)
	})
}

// own gives a file to a user.
func own(name, owner string) error {
	if owner == "" {
		return nil
	}
	c, err := credential(owner)
	if err != nil {
		return err
	}
	if err := os.Chown(name, int(c.Uid), int(c.Gid)); err != nil {
		return fmt.Errorf("give %s to %s: %w", name, owner, err)
	}
	return nil
}

// Close ends everything that runs in the sandbox, the youngest first, and with it the sandbox. It is idempotent; all calls return
// when it is done.
func (h *Sandbox) Close() error {
	h.gate.Lock()
	first := !h.closed
	h.closed = true
	h.gate.Unlock()
	if !first {
		<-h.done
		return nil
	}
	// What was being done is done, and nothing more begins: these are all that there are.
	h.mu.Lock()
	daemons, children := slices.Clone(h.daemons), slices.Clone(h.children)
	h.mu.Unlock()
	var errs []error
	for _, c := range children {
		errs = append(errs, c.Kill()) // why, Run's caller learns from Run
	}
	for _, d := range slices.Backward(daemons) {
		errs = append(errs, d.Stop())
	}
	close(h.work)
	<-h.done
	return errors.Join(errs...)
}

// markVariable is the environment variable by which the processes of a plain sandbox are known, with the sandbox's folder.
const markVariable = "NETDELTA_HOME"

// mark is what the processes of a plain sandbox have in their environment.
func (h *Sandbox) mark() string { return markVariable + "=" + h.folder }

// prepare readies a plain sandbox. What its programs leave behind becomes a child of this process, so that it is found, and the
// container's first process tells it from orphans.
func (h *Sandbox) prepare() error {
	anywhere()
	return errors.Join(unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), os.Mkdir(h.Path(temporary), 0o700))
}

// clearWithin is how long processes of a plain sandbox that were killed may take to be gone.
const clearWithin = 5 * time.Second

// clear ends what runs in a plain sandbox, and removes it.
func (h *Sandbox) clear() {
	killed := map[int]bool{}
	for end := time.Now().Add(clearWithin); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		for _, pid := range marked("/proc", h.mark()) {
			_ = unix.Kill(pid, unix.SIGKILL) // that it has just ended is as good
			killed[pid] = true
		}
		for pid := range killed {
			// It is a child by now, unless it is one of a process that is ending.
			if got, err := unix.Wait4(pid, nil, unix.WNOHANG, nil); got == pid || errors.Is(err, unix.ECHILD) && unix.Kill(pid, 0) != nil {
				delete(killed, pid)
			}
		}
		if len(killed) == 0 {
			break
		}
	}
	_ = os.RemoveAll(h.folder) // it is in memory, and goes with the container
}

// EndOrphans ends the processes of plain sandboxes whose owner was killed: those that the container's first process, which calls this, has
// for children.
func EndOrphans() {
	for _, pid := range marked("/proc", markVariable+"=") {
		if _, fields, err := procfile.Stat("/proc", pid); err == nil && fields[procfile.StatParent] == strconv.Itoa(os.Getpid()) {
			_ = unix.Kill(pid, unix.SIGKILL) // that it has just ended is as good
		}
	}
}

// marked are the living processes that have a word in their environment that begins with mark.
func marked(proc, mark string) (pids []int) {
	files, _ := filepath.Glob(filepath.Join(proc, "[0-9]*", "environ")) // the pattern is right
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil || !strings.Contains("\x00"+string(text), "\x00"+mark) {
			continue // it has ended, or is somebody else's
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name))); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// ErrMissing is matched by the error of a program that is not installed.
var ErrMissing = errors.New("program is not installed")

// systemFolders are searched after PATH, which processes in pods lack, and which ordinary users have without the folders
// of daemons.
const systemFolders = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Look finds a program: in PATH, then in the folders of system programs. A path is taken as it is, and may name a library
// that a program loads. The error matches ErrMissing where there is none.
func Look(name string) (string, error) {
	if strings.Contains(name, "/") {
		if _, err := os.Stat(name); errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("%w: %s", ErrMissing, name)
		}
		return name, nil
	}
	for _, folder := range filepath.SplitList(os.Getenv("PATH") + ":" + systemFolders) {
		if folder == "" {
			continue // the current folder is no place for a system's program
		}
		if path, err := exec.LookPath(filepath.Join(folder, name)); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%w: %s", ErrMissing, name)
}

// PortFree finds out that a server could listen on a TCP port in this process's network namespace, for servers that say so late,
// elsewhere or not at all. Connections of an earlier server in TIME_WAIT are no hindrance. The error matches EADDRINUSE where
// another has the port; port 0 is refused, since clients would not know which it became.
func PortFree(ctx context.Context, at netip.AddrPort) error {
	if at.Port() == 0 {
		return errors.New("port 0 is not possible: ports are pinned")
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", at.String())
	if err != nil {
		return err
	}
	return l.Close()
}
