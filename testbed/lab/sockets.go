package lab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"netdelta/internal/owner"
	"netdelta/network"
	"netdelta/testbed"
	"netdelta/testbed/lab/datapath"
)

// joining is the programs that join sockets, with the control group that the pods' processes are in. It outlives its network:
// what sockets have in their queues must not be lost under processes that run on.
type joining struct {
	group    *group
	programs *datapath.Joining
	kept     bool // the lab closes it
	ended    bool
}

// joinSockets attaches programs to a control group made for them, which the processes enter when the network is there.
func (b *builder) joinSockets(op network.JoinSockets) error {
	g, err := newGroup()
	if err != nil {
		return err
	}
	programs, err := datapath.JoinSockets(op, g.path)
	if err != nil {
		return errors.Join(err, g.remove())
	}
	b.companions = append(b.companions, &joining{group: g, programs: programs})
	return nil
}

// start implements starter: it has the lab's processes enter the control group, and those that the lab will start.
func (j *joining) start(_ context.Context, l *Testbed) error {
	l.joinings = append(l.joinings, j)
	j.kept = true
	all, err := inhabitants()
	if err != nil {
		return err
	}
	for _, p := range all {
		if p.Mark == l.mark {
			if err := j.group.take(p.PID); err != nil {
				return err
			}
		}
	}
	return nil
}

// Close implements io.Closer.
func (j *joining) Close() error {
	j.ended = true
	if j.kept {
		return j.programs.End()
	}
	return j.finish()
}

// finish takes all away, once the processes have ended.
func (j *joining) finish() error { return errors.Join(j.programs.Close(), j.group.remove()) }

// amongPods calls f while this program is in the control group of the pods' processes, where there is one: sockets belong
// for good to the group that they were opened in.
func (l *Testbed) amongPods(f func() error) (err error) {
	if len(l.joinings) == 0 || l.joinings[len(l.joinings)-1].ended {
		return f()
	}
	l.visiting.Lock()
	defer l.visiting.Unlock()
	mount, own, err := unifiedHierarchy()
	if err != nil {
		return err
	}
	home, self := &group{path: filepath.Join(mount, own)}, os.Getpid()
	if err := l.joinings[len(l.joinings)-1].group.take(self); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, home.take(self)) }()
	return f()
}

// enter opens the control group that a process has to start in, nil where there is none.
func (l *Testbed) enter() (*os.File, error) {
	if len(l.joinings) == 0 {
		return nil, nil
	}
	last := l.joinings[len(l.joinings)-1]
	if last.ended {
		return nil, nil
	}
	f, err := os.Open(last.group.path)
	if err != nil {
		return nil, fmt.Errorf("open the control group of the pods: %w", err)
	}
	return f, nil
}

// groupPrefix is what the folders of control groups of labs begin with; the owner's mark follows.
const groupPrefix = "netdelta-"

// group is a control group (version 2) that holds the processes of a lab's pods, without limits.
type group struct{ path string }

// newGroup makes a control group below this program's.
func newGroup() (*group, error) {
	top, own, err := unifiedHierarchy()
	if err != nil {
		return nil, err
	}
	self, err := owner.Self()
	if err != nil {
		return nil, err
	}
	path, err := os.MkdirTemp(filepath.Join(top, own), groupPrefix+self.String()+"-*")
	switch {
	case errors.Is(err, unix.EROFS), errors.Is(err, fs.ErrPermission), errors.Is(err, fs.ErrNotExist):
		return nil, &testbed.UnsupportedError{
			Feature: "joining sockets", Need: fmt.Sprintf("a control group of its own (%v)", err),
			Fix: "run it as root where control groups of version 2 can be made: in a container, with its own cgroup namespace and a writable /sys/fs/cgroup",
		}
	case err != nil:
		return nil, fmt.Errorf("make a control group: %w", err)
	}
	return &group{path}, nil
}

// unifiedHierarchy finds where control groups of version 2 are mounted, and this program's group below.
func unifiedHierarchy() (mount, own string, err error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", "", fmt.Errorf("look for control groups: %w", err)
	}
	for line := range strings.Lines(string(mounts)) {
		before, after, _ := strings.Cut(line, " - ")
		if fields := strings.Fields(before); len(fields) > 4 && strings.HasPrefix(after, "cgroup2 ") && fields[3] == "/" {
			mount = fields[4]
			break
		}
	}
	if mount == "" {
		return "", "", &testbed.UnsupportedError{
			Feature: "joining sockets", Need: "control groups of version 2 (none are mounted)", Fix: "mount them with mount -t cgroup2 none /sys/fs/cgroup",
		}
	}
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", "", fmt.Errorf("look for this program's control group: %w", err)
	}
	for line := range strings.Lines(string(groups)) {
		if path, found := strings.CutPrefix(strings.TrimSpace(line), "0::"); found {
			return mount, path, nil
		}
	}
	return mount, "/", nil
}

// take moves a process into the group; one that has ended is none.
func (g *group) take(pid int) error {
	err := os.WriteFile(filepath.Join(g.path, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0)
	if err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("move process %d into the control group %s: %w", pid, g.path, err)
	}
	return nil
}

// removePatience is how long a control group may take to be empty once its processes have ended.
const removePatience = 5 * time.Second

// remove takes the group away once its processes have ended. It is idempotent.
func (g *group) remove() error {
	var err error
	removed, _ := until(context.Background(), removePatience, time.Millisecond, func() (bool, error) {
		if err = os.Remove(g.path); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return !errors.Is(err, unix.EBUSY), nil
	})
	if err != nil || !removed {
		return fmt.Errorf("remove a control group: %w", err)
	}
	return nil
}

// groupsLeft lists the control groups of labs whose program has died.
func groupsLeft() ([]string, error) {
	mount, _, err := unifiedHierarchy()
	if _, is := errors.AsType[*testbed.UnsupportedError](err); is {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var found []string
	err = filepath.WalkDir(mount, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.IsDir() {
			return nil //nolint:nilerr // what this user may not see, or what went away, is not a lab's
		}
		rest, ours := strings.CutPrefix(e.Name(), groupPrefix)
		if !ours {
			return nil
		}
		if o, err := owner.Parse(rest); err == nil && o.Dead() {
			found = append(found, path)
		}
		return fs.SkipDir
	})
	return found, err
}
