package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"netdelta/internal/owner"
	"netdelta/network"
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
	marked, err := owner.Processes()
	if err != nil {
		return err
	}
	for _, p := range marked {
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
