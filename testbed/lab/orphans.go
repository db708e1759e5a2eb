package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"netdelta/internal/owner"
)

// Orphan is a process, control group or folder that a killed run has left.
type Orphan struct {
	Kind string // "process", "control group" or "directory"
	Name string // "netdelta (4711)" or a path
	pid  int
}

// String is for people.
func (o Orphan) String() string { return o.Kind + " " + o.Name }

// Orphans lists what killed runs left: processes that carry the mark of a program that has died and are proven to be of its lab, and
// its temporary directories. Namespaces and links are not among it: the kernel removes them with the last process inside.
func Orphans() ([]Orphan, error) {
	marked, err := owner.Processes()
	if err != nil {
		return nil, fmt.Errorf("look for what killed runs left: %w", err)
	}
	var found []Orphan
	for _, p := range marked {
		if p.PID != os.Getpid() && p.Owner.Dead() && p.Proven() {
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
	now, ok := owner.ProcessOf(pid)
	if !ok || !now.Proven() || !meant(now) {
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
