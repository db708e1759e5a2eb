// Package leak finds what tests leave behind: changes to the host, and namespaces, file descriptors, threads and processes
// of the test itself.
package leak

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"netdelta/internal/netns"
	"netdelta/internal/owner"
	"netdelta/internal/procfile"
)

// patience is how long threads and goroutines that are about to end may take.
const patience = 3 * time.Second

// Main runs the tests of a package and fails if they leave file descriptors of namespaces or of eBPF programs, threads inside
// namespaces, control groups, or processes. A TestMain calls it and exits with what it returns.
func Main(m *testing.M) int {
	code := m.Run()
	found := Own()
	for deadline := time.Now().Add(patience); len(found) > 0 && time.Now().Before(deadline); found = Own() {
		runtime.GC()
		time.Sleep(50 * time.Millisecond)
	}
	for _, f := range found {
		fmt.Fprintln(os.Stderr, "leak:", f)
	}
	if code == 0 && len(found) > 0 {
		code = 1
	}
	return code
}

// Own lists what this program holds of other network namespaces and of eBPF programs, the control groups that it made, and the
// processes that it started and that run still.
func Own() []string {
	var found []string
	home, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		return []string{err.Error()}
	}
	for _, fd := range entries("/proc/self/fd/*") {
		target, err := os.Readlink(fd)
		switch {
		case err != nil:
		case strings.HasPrefix(target, "net:[") && target != home:
			found = append(found, "file descriptor "+filepath.Base(fd)+" of namespace "+target)
		case slices.Contains([]string{"anon_inode:bpf-prog", "anon_inode:bpf-map", "anon_inode:bpf_link"}, target):
			found = append(found, "file descriptor "+filepath.Base(fd)+" of "+target)
		}
	}
	for _, task := range entries("/proc/self/task/*") {
		if target, err := os.Readlink(task + "/ns/net"); err == nil && target != home {
			found = append(found, "thread "+filepath.Base(task)+" in namespace "+target)
		}
	}
	marked, err := owner.Processes()
	if err != nil {
		return append(found, err.Error())
	}
	self, err := owner.Self()
	if err != nil {
		return append(found, err.Error())
	}
	for _, g := range groups() {
		if strings.Contains(filepath.Base(g), self.String()) {
			found = append(found, "control group "+g)
		}
	}
	for _, p := range marked {
		if p.Owner == self {
			found = append(found, fmt.Sprintf("process %s (%d)", p.Name, p.PID))
		}
	}
	return append(found, children()...)
}

// children lists the processes whose parent is this one, those not waited for too.
func children() []string {
	pids, err := procfile.Processes("/proc")
	if err != nil {
		return []string{err.Error()}
	}
	var found []string
	for _, pid := range pids {
		if _, fields, err := procfile.Stat("/proc", pid); err == nil && fields[procfile.StatParent] == fmt.Sprint(os.Getpid()) {
			found = append(found, fmt.Sprintf("child process %d in state %s", pid, fields[procfile.StatState]))
		}
	}
	return found
}

// groups lists all control groups.
func groups() []string {
	var found []string
	// What can't be seen was not made here.
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			found = append(found, path)
		}
		return nil
	})
	return found
}

func entries(pattern string) []string {
	found, err := filepath.Glob(pattern)
	if err != nil {
		panic(err) // the patterns are constants
	}
	return found
}

// Tripwire tells when a network namespace has ended. It is one end of a veth pair, in a namespace of its own; the other end
// is in the namespace that is watched, with which it ends, and this end with it. It does not hold the other namespace.
type Tripwire struct {
	ns *netns.Namespace
	nl *netlink.Handle
}

const wire = "wire"

// NewTripwire watches the namespace that a process is in.
func NewTripwire(pid int) (*Tripwire, error) {
	target, err := netns.Of(pid)
	if err != nil {
		return nil, err
	}
	if err := notOwn(target); err != nil {
		return nil, errors.Join(fmt.Errorf("stretch a tripwire into the namespace of process %d: %w", pid, err), target.Close())
	}
	w := &Tripwire{}
	w.ns, err = netns.New(func() error {
		var err error
		if w.nl, err = netlink.NewHandle(unix.NETLINK_ROUTE); err != nil {
			return err
		}
		return target.WithFD(func(fd int) error {
			a := netlink.NewLinkAttrs()
			a.Name = wire
			v := netlink.NewVeth(a)
			v.PeerName, v.PeerNamespace = wire, netlink.NsFd(fd)
			return w.nl.LinkAdd(v)
		})
	})
	if err := errors.Join(err, target.Close()); err != nil {
		return nil, errors.Join(fmt.Errorf("stretch a tripwire into the namespace of process %d: %w", pid, err), w.Close())
	}
	return w, nil
}

// notOwn returns nil for a namespace that is not this program's, in which a wire would be the machine's.
func notOwn(target *netns.Namespace) error {
	own, err := netns.Own()
	if err != nil {
		return err
	}
	if own.ID() == target.ID() {
		err = errors.New("it is this program's own")
	}
	return errors.Join(err, own.Close())
}

// Wait returns when the namespace has ended, with an error when it is there still after the given time.
func (w *Tripwire) Wait(patience time.Duration) error {
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		_, err := w.nl.LinkByName(wire)
		if _, is := errors.AsType[netlink.LinkNotFoundError](err); is {
			return nil
		}
		if err != nil {
			return fmt.Errorf("look at a tripwire: %w", err)
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("a network namespace is there still after %s", patience)
		}
	}
}

// Close removes the tripwire from the namespace, if that lives still.
func (w *Tripwire) Close() error {
	if w.nl != nil {
		w.nl.Close()
	}
	if w.ns == nil {
		return nil
	}
	return w.ns.Close()
}
