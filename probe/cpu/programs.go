package cpu

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"netdelta/internal/procfile"
	"netdelta/probe/procstat"
)

// programs are the processes that agents have started to serve, with all that those have started. Of each the clock is read, and
// what the kernel has summed up of children of it that have ended: a server may start one for each connection.
type programs struct {
	root  string // of the proc file system
	clock func(pid int) (time.Duration, error)
	pids  []int
}

// Programs has the meter count the programs that serve, besides the server's own process: the programs that these agents, of which the
// server is one, have started by now. Other agents count as a whole. On another machine they are in no figure, and then the
// server's time is none.
func (m *Meter) Programs(agents []Process) error {
	m.programs = programs{root: m.kernel.root, clock: m.kernel.clock}
	m.daemons, m.spent = nil, nil // which are among them
	for _, a := range agents {
		if !a.Local() {
			m.server = 0
			m.lacks = append(m.lacks, "processor time of the programs that serve: their clocks can only be read on their own machine")
			return nil
		}
	}
	parents, err := parentsOf(m.kernel.root)
	if err != nil {
		return err
	}
	for _, a := range agents {
		if a.PID() != m.server {
			m.programs.pids = append(m.programs.pids, a.PID())
		}
		m.programs.pids = append(m.programs.pids, descendants(parents, a.PID())...)
	}
	slices.Sort(m.programs.pids)
	m.programs.pids = slices.Compact(m.programs.pids)
	return nil
}

// parentsOf is the parent of every process that can be seen.
func parentsOf(root string) (map[int]int, error) {
	pids, err := procfile.Processes(root)
	if err != nil {
		return nil, fmt.Errorf("looking for the programs that serve: %w", err)
	}
	parents := map[int]int{}
	for _, pid := range pids {
		if s, err := family(root, pid); err == nil { // else it has ended, or may not be seen
			parents[pid] = s.parent
		}
	}
	return parents, nil
}

// descendants are the processes below one.
func descendants(parents map[int]int, of int) []int {
	var all []int
	for pid, parent := range parents {
		if parent == of && pid != of {
			all = append(append(all, pid), descendants(parents, pid)...)
		}
	}
	return all
}

// kin is what a process's stat says of its family.
type kin struct {
	parent int
	ended  time.Duration // what its children used that have ended
}

// family reads a process's stat.
func family(root string, pid int) (kin, error) {
	_, fields, err := procfile.Stat(root, pid)
	if err != nil {
		return kin{}, err
	}
	parent, errParent := strconv.Atoi(fields[procfile.StatParent])
	user, errUser := strconv.ParseInt(fields[procfile.StatEndedUser], 10, 64)
	system, errSystem := strconv.ParseInt(fields[procfile.StatEndedUser+1], 10, 64)
	return kin{parent, time.Duration(user+system) * procstat.Tick}, errors.Join(errParent, errUser, errSystem)
}

// read is what the programs have used so far. One that has ended since it was found counts no more.
func (p *programs) read() (sum time.Duration, err error) {
	for _, pid := range p.pids {
		used, err := p.clock(pid)
		if err == nil {
			sum += used
			var k kin
			k, err = family(p.root, pid)
			sum += k.ended
		}
		if err != nil && !errors.Is(err, unix.ESRCH) && !errors.Is(err, unix.EINVAL) && !errors.Is(err, fs.ErrNotExist) {
			return 0, fmt.Errorf("processor time of the programs that serve: %w", err)
		}
	}
	return sum, nil
}
