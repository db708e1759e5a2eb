package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"slices"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"netdelta/internal/owner"
	"netdelta/network"
)

const (
	// readyPatience is how long the kernel may take to notice that links are up; usually it is a millisecond.
	readyPatience = 10 * time.Second
	readyPause    = 500 * time.Microsecond
)

// ready waits until all devices are up. Until then they drop what they should send, bridges don't forward, and the first
// request of a trial would come a second late. Then it waits until all IPv6 addresses take packets, for the same reason.
func (b *builder) ready(ctx context.Context) error {
	if err := b.agree(ctx, lacpPatience); err != nil {
		return err
	}
	deadline := time.Now().Add(readyPatience)
	for where, names := range b.expected {
		down := func(s *space) (string, error) { return s.firstDown(names) }
		if err := b.await(ctx, where, deadline, down); err != nil {
			return err
		}
	}
	for where, addresses := range b.addressed {
		deaf := func(s *space) (string, error) { return s.firstDeaf(addresses) }
		if err := b.await(ctx, where, deadline, deaf); err != nil {
			return err
		}
	}
	return nil
}

// await asks a namespace what is not ready in it until nothing is, or the deadline has passed.
func (b *builder) await(ctx context.Context, where network.Space, deadline time.Time, lacks func(*space) (string, error)) error {
	s, err := b.in(where)
	if err != nil {
		return err
	}
	var lacking string
	ready, err := until(ctx, time.Until(deadline), readyPause, func() (bool, error) {
		var err error
		lacking, err = lacks(s)
		return lacking == "", err
	})
	if err == nil && !ready {
		return fmt.Errorf("%s in %s did not come up within %s", lacking, s.name, readyPatience)
	}
	return err
}

// until asks, with pauses, until the answer is yes, there is an error, or patience ends. It asks at least once.
func until(ctx context.Context, patience, pause time.Duration, is func() (bool, error)) (bool, error) {
	for deadline := time.Now().Add(patience); ; time.Sleep(pause) {
		yes, err := is()
		if yes || err != nil {
			return yes, err
		}
		if err := ctx.Err(); err != nil {
			return false, err
		}
		if time.Now().After(deadline) {
			return false, nil
		}
	}
}

// firstDeaf is one of the addresses that take no packets yet, "" if all do. The kernel joins the groups in which neighbours
// ask for an address before it takes packets for it.
func (s *space) firstDeaf(addresses map[netip.Addr]bool) (string, error) {
	local, err := s.local()
	if err != nil {
		return "", err
	}
	for a := range addresses {
		if !local[a] {
			return "address " + a.String(), nil
		}
	}
	return "", nil
}

// firstDown is one of the named devices that is not up, "" if all are.
func (s *space) firstDown(names map[string]bool) (string, error) {
	links, err := s.links()
	if err != nil {
		return "", err
	}
	up := 0
	for _, l := range links {
		a := l.Attrs()
		if !names[a.Name] {
			continue
		}
		// The kernel never learns the state of ipvlan links, which are up as soon as their parent is.
		stateless := l.Type() == "ipvlan" && a.OperState == netlink.OperUnknown && a.RawFlags&unix.IFF_LOWER_UP != 0
		if a.OperState != netlink.OperUp && !stateless {
			return "device " + a.Name, nil
		}
		up++
	}
	if up != len(names) {
		return "", fmt.Errorf("%s has %d of the %d devices that were made", s.name, up, len(names))
	}
	return "", nil
}

// companions are the parts of a network that the kernel does not remove with its namespaces: processes, borrowed network cards, state
// of plugins. They are in the order in which they were made. Their Close is called before the network is torn down; it is idempotent,
// and also works where the companion was never started.
type companions []io.Closer

// starter is a companion that is to be started once all devices of the network are there.
type starter interface {
	start(ctx context.Context, l *Testbed) error
}

// start starts all.
func (all companions) start(ctx context.Context, l *Testbed) error {
	for _, c := range all {
		if s, ok := c.(starter); ok {
			if err := s.start(ctx, l); err != nil {
				return err
			}
		}
	}
	return nil
}

// close ends all, the last one first.
func (all companions) close() error {
	var err error
	for _, c := range slices.Backward(all) {
		err = errors.Join(err, c.Close())
	}
	return err
}

// Orphan is a process, control group or folder that a killed run has left.
type Orphan struct {
	Kind string // "process", "control group" or "directory"
	Name string // "netdelta (4711)" or a path
	pid  int
}

// String is for people.
func (o Orphan) String() string { return o.Kind + " " + o.Name }

// Orphans lists what killed runs left: processes that are proven to be of the lab of a program that has died, and its temporary
// directories. Namespaces and links are not among it: the kernel removes them with the last process inside.
func Orphans() ([]Orphan, error) {
	all, err := inhabitants()
	if err != nil {
		return nil, fmt.Errorf("look for what killed runs left: %w", err)
	}
	var found []Orphan
	for _, p := range all {
		if p.PID != os.Getpid() && p.Owner.Dead() {
			found = append(found, Orphan{Kind: "process", Name: fmt.Sprintf("%s (%d)", p.Name, p.PID), pid: p.PID})
		}
	}
	groups, err := groupsLeft()
	if err != nil {
		return found, fmt.Errorf("look for what killed runs left: %w", err)
	}
	for _, g := range groups {
		found = append(found, Orphan{Kind: "control group", Name: g})
	}
	dirs, err := owner.TempDirs()
	if err != nil {
		return found, fmt.Errorf("look for what killed runs left: %w", err)
	}
	for _, d := range dirs {
		found = append(found, Orphan{Kind: "directory", Name: d})
	}
	return found, nil
}

// cleanupPasses is how often Cleanup looks at most.
const cleanupPasses = 5

// Cleanup removes all orphans, also hung and stopped processes, and returns what it removed. What belongs to a program that
// runs is left alone. It looks again after each pass: an orphan may have started another process before it was ended.
func Cleanup(ctx context.Context) (removed []Orphan, err error) {
	for range cleanupPasses {
		gone, err := cleanOnce(ctx)
		removed = append(removed, gone...)
		if err != nil || len(gone) == 0 {
			return removed, err
		}
	}
	return removed, nil
}

// cleanOnce removes the orphans that are there now.
func cleanOnce(ctx context.Context) (removed []Orphan, failed error) {
	found, err := Orphans()
	if err != nil {
		return nil, err
	}
	for _, o := range found {
		if err := ctx.Err(); err != nil {
			return removed, errors.Join(failed, fmt.Errorf("clean up: %w", err))
		}
		if err := o.remove(); err != nil {
			failed = errors.Join(failed, fmt.Errorf("clean up %s: %w", o, err))
			continue
		}
		removed = append(removed, o)
	}
	return removed, failed
}

// remove ends the process or deletes the directory.
func (o Orphan) remove() error {
	switch o.Kind {
	case "directory":
		return os.RemoveAll(o.Name)
	case "control group":
		return (&group{o.Name}).remove()
	}
	return endProcess(o.pid, func(p owner.Process) bool { return p.Owner.Dead() })
}

// end ends processes and lists those that it could not.
func end(all []owner.Process) []string {
	var left []string
	for _, p := range all {
		if err := endProcess(p.PID, func(now owner.Process) bool { return now.Mark == p.Mark }); err != nil {
			left = append(left, fmt.Sprintf("%s (%d): %v", p.Name, p.PID, err))
		}
	}
	return left
}

// endPatience is how long a process may take to end once it is killed.
const endPatience = 5 * time.Second

// errInKernel says that a process does not end though it was killed.
var errInKernel = fmt.Errorf("killed, but there still after %s: it waits inside the kernel", endPatience)

// endProcess kills the process with this number if it is still the one that was meant, and waits for its end.
func endProcess(pid int, meant func(owner.Process) bool) error {
	// The descriptor stands for this very process: from here on its number can't mean another one.
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open the process: %w", err)
	}
	defer func() { _ = unix.Close(fd) }()
	now, ok := spaceMarks{}.inhabitant(pid)
	if !ok || !meant(now) {
		return nil
	}
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("kill the process: %w", err)
	}
	if !owner.Ended(fd, endPatience) {
		return errInKernel
	}
	return nil
}
