package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"netdelta/internal/machine"
	"netdelta/unit"
)

// Folder is where a home is, for those who see it. It hides what the machine has there, sockets of its own daemons among it.
const Folder = "/run"

// spare is what must stay free of the machine's memory beside a home.
const spare = 256 * unit.MiB

// Home is a folder in memory, of limited size, in a mount namespace that only the programs started in it share: the kernel
// removes it with the last of them. It may be used by several goroutines.
type Home struct {
	work chan func()
	done chan struct{} // closed when the thread is gone

	mu       sync.Mutex
	daemons  []*Daemon
	children []*Daemon // started by Run and not over yet
	closed   bool
}

// ErrClosed is the error of a home that was closed.
var ErrClosed = errors.New("the home of daemons is closed")

// Open makes a home for at most size bytes of data. It refuses when the machine has not that much memory to give.
func Open(size unit.Bytes) (*Home, error) {
	free, err := machine.FreeMemory()
	if err != nil {
		return nil, err
	}
	if free < size+spare {
		return nil, fmt.Errorf("a folder of %v in memory for a service: %v is free, and %v of it have to stay so; end other programs or ask for less", size, free, spare)
	}
	h := &Home{work: make(chan func()), done: make(chan struct{})}
	ready := make(chan error, 1)
	go h.live(size, ready)
	if err := <-ready; err != nil {
		return nil, fmt.Errorf("a folder in memory for a service: %w", err)
	}
	return h, nil
}

// live is the home's thread: mount namespaces belong to threads, and what a thread starts is born in its own. Ending without
// unlocking ends the thread too, and with it the namespace, unless a daemon still holds it.
func (h *Home) live(size unit.Bytes, ready chan<- error) {
	runtime.LockOSThread()
	defer close(h.done)
	err := settle(size)
	ready <- err
	if err != nil {
		return
	}
	for f := range h.work {
		f()
	}
}

// settle gives the calling thread a mount namespace of its own, with an empty folder in memory. What is mounted in it is not
// seen outside.
func settle(size unit.Bytes) error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("make a mount namespace (it takes root, or a user namespace): %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_SLAVE|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("keep mounts from spreading: %w", err)
	}
	options := fmt.Sprintf("size=%d,mode=0755", int64(size))
	if err := unix.Mount("tmpfs", Folder, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		return fmt.Errorf("mount a tmpfs of %v at %s: %w", size, Folder, err)
	}
	return nil
}

// Do runs f where the home's folder is seen, at Folder. It must not block for long: everything of the home waits for it.
func (h *Home) Do(f func() error) error {
	result := make(chan error, 1)
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return ErrClosed
	}
	// Under the lock, so that Close can't close the channel between.
	h.work <- func() { result <- f() }
	h.mu.Unlock()
	return <-result
}

// Write writes a file of the home, with the folders above it. Its name is relative to Folder. The owner is a user of this
// machine, "" for that of this process.
func (h *Home) Write(name string, data []byte, mode fs.FileMode, owner string) error {
	return h.Do(func() error {
		full := filepath.Join(Folder, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			return fmt.Errorf("write %s: %w", full, err)
		}
		if err := os.WriteFile(full, data, mode); err != nil {
			return fmt.Errorf("write %s: %w", full, filled(err))
		}
		return own(full, owner)
	})
}

// filled says of a full home what to do.
func filled(err error) error {
	if errors.Is(err, unix.ENOSPC) {
		return fmt.Errorf("%w: the service needs more than the memory that was set aside for it", err)
	}
	return err
}

// Folder makes a folder of the home, with those above it. Its name and owner are as in Write.
func (h *Home) Folder(name, owner string) error {
	return h.Do(func() error {
		full := filepath.Join(Folder, name)
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

// Close ends everything that runs in the home, the youngest first, and with it the home. It is idempotent.
func (h *Home) Close() error {
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		<-h.done
		return nil
	}
	h.closed = true
	daemons, children := slices.Clone(h.daemons), slices.Clone(h.children)
	close(h.work)
	h.mu.Unlock()
	for _, c := range children {
		_ = c.Kill() // Run's caller learns of it
	}
	var errs []error
	for _, d := range slices.Backward(daemons) {
		errs = append(errs, d.Stop())
	}
	<-h.done
	return errors.Join(errs...)
}
