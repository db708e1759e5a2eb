package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"netdelta/internal/machine"
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
	h := &Sandbox{folder: Folder, work: make(chan func()), done: make(chan struct{})}
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
