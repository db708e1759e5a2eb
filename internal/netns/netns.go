// Package netns makes and enters network namespaces that have no name: they live as long as a file descriptor or a process
// holds them, so that nothing is left of them when the program is killed.
package netns

import (
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// ID identifies a namespace, as long as it lives.
type ID struct{ Device, Inode uint64 }

// Namespace is a network namespace held by a file descriptor.
type Namespace struct {
	id ID

	mu sync.RWMutex // held for reading while fd is in use
	fd int          // -1 once closed
}

// ErrClosed is the error of a Namespace that was closed.
var ErrClosed = errors.New("network namespace is closed")

// RaiseLimit is how a user may have more namespaces.
const RaiseLimit = "raise the limit of network namespaces: sysctl -w user.max_net_namespaces=10000"

// Limit is how many namespaces this user may have; many where the kernel does not say.
func Limit() int {
	text, err := os.ReadFile("/proc/sys/user/max_net_namespaces")
	if err != nil {
		return math.MaxInt32
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return math.MaxInt32
	}
	return n
}

const ownNamespace = "/proc/thread-self/ns/net"

// New makes an empty namespace and runs inside in it, which may be nil. It needs CAP_SYS_ADMIN; without it
// errors.Is(err, unix.EPERM).
func New(inside func() error) (*Namespace, error) {
	var n *Namespace
	err := onThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			if errors.Is(err, unix.ENOSPC) {
				err = fmt.Errorf("%w: there are too many; %s", err, RaiseLimit)
			}
			return fmt.Errorf("make a network namespace: %w", err)
		}
		var err error
		n, err = open(ownNamespace)
		if err != nil || inside == nil {
			return err
		}
		return inside()
	})
	if err != nil && n != nil {
		return nil, errors.Join(err, n.Close())
	}
	return n, err
}

// Own is the namespace of the whole program.
func Own() (*Namespace, error) { return open("/proc/self/ns/net") }

// Of is the namespace of the process with this number.
func Of(pid int) (*Namespace, error) { return open(fmt.Sprintf("/proc/%d/ns/net", pid)) }

// OfFile is the namespace that an open file of this program stands for.
func OfFile(fd int) (*Namespace, error) { return open(fmt.Sprintf("/proc/self/fd/%d", fd)) }

func open(path string) (*Namespace, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open network namespace %s: %w", path, err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, errors.Join(fmt.Errorf("look at network namespace %s: %w", path, err), unix.Close(fd))
	}
	return &Namespace{fd: fd, id: ID{Device: st.Dev, Inode: st.Ino}}, nil
}

// ID is the same for all that are in this namespace.
func (n *Namespace) ID() ID { return n.id }

// WithFD calls f with the file descriptor, which stays open meanwhile.
func (n *Namespace) WithFD(f func(fd int) error) error {
	n.mu.RLock()
	defer n.mu.RUnlock()
	if n.fd < 0 {
		return ErrClosed
	}
	return f(n.fd)
}

// Close lets go of the namespace. It is idempotent. The namespace itself ends, some time later, with its last holder.
func (n *Namespace) Close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.fd < 0 {
		return nil
	}
	err := unix.Close(n.fd)
	n.fd = -1
	return err
}

// Do runs f on a thread inside the namespace. What f starts in goroutines is outside. A thread that can't be brought back
// ends instead of being used again.
func (n *Namespace) Do(f func() error) error {
	return n.WithFD(func(fd int) error {
		return onThread(func() error {
			if err := unix.Setns(fd, unix.CLONE_NEWNET); err != nil {
				return fmt.Errorf("enter a network namespace: %w", err)
			}
			return f()
		})
	})
}

// DoOnce is Do on a thread that ends afterwards, so that f may change it in other ways, such as the processors that it may
// use.
func (n *Namespace) DoOnce(f func() error) error {
	return n.WithFD(func(fd int) error { return Within(fd, f) })
}

// Within runs f on a thread of its own inside the namespace that a file descriptor holds. What f starts in goroutines is
// outside. The thread ends afterwards.
func Within(fd int, f func() error) error {
	return onLockedThread(func() (keep bool, err error) {
		if err := unix.Setns(fd, unix.CLONE_NEWNET); err != nil {
			return false, fmt.Errorf("enter a network namespace: %w", err)
		}
		return false, f()
	})
}

// onThread runs f on a thread of its own and brings the thread back into the namespace that it came from.
func onThread(f func() error) error {
	return onLockedThread(func() (keep bool, err error) {
		home, err := unix.Open(ownNamespace, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return true, fmt.Errorf("open the thread's network namespace: %w", err)
		}
		err = f()
		keep = unix.Setns(home, unix.CLONE_NEWNET) == nil
		return keep, errors.Join(err, unix.Close(home))
	})
}

// onLockedThread runs f on a thread that runs nothing else meanwhile. Unless f says that it may be kept, the thread ends.
func onLockedThread(f func() (keep bool, err error)) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			// The main thread never ends and is what others see as the program's namespace: hold it here while another
			// does the work.
			defer runtime.UnlockOSThread()
			done <- onLockedThread(f)
			return
		}
		keep, err := f()
		if keep {
			runtime.UnlockOSThread()
		}
		done <- err
	}()
	return <-done
}
