package procfile

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Kinds of a processor's clock, in its number. See clock_getcpuclockid(3).
const (
	ofProcess = 2
	ofThread  = 6
)

// ProcessCPU is the processor time that a process of this machine has used, in the kernel and outside, precise to the
// nanosecond where the kernel's scheduler clock is.
func ProcessCPU(pid int) (time.Duration, error) { return clock("process", pid, ofProcess) }

// ThreadCPU is the same for a thread of this process, which must be running.
func ThreadCPU(id int) (time.Duration, error) { return clock("thread", id, ofThread) }

// clock reads the clock of a process or a thread.
func clock(what string, id int, kind int32) (time.Duration, error) {
	const most = 1 << 22 // the kernel's own limit; beyond it the clock's number would be another's
	if id <= 0 || id > most {
		return 0, fmt.Errorf("reading the processor time of %s %d: no %[1]s has this number", what, id)
	}
	var ts unix.Timespec
	if err := unix.ClockGettime(int32(^id)<<3|kind, &ts); err != nil {
		return 0, fmt.Errorf("reading the processor time of %s %d: %w", what, id, err)
	}
	return time.Duration(ts.Nano()), nil
}

// Below lists the processes that processes have started, and that those have, which have not ended.
func Below(processes ...int) ([]int, error) {
	all, err := Processes("/proc")
	if err != nil {
		return nil, fmt.Errorf("looking for what processes have started: %w", err)
	}
	children := map[int][]int{}
	for _, pid := range all {
		if k, err := kinOf(pid); err == nil { // else it has ended, or may not be seen
			children[k.parent] = append(children[k.parent], pid)
		}
	}
	var below []int
	for next := slices.Clone(processes); len(next) > 0; next = next[1:] {
		below, next = append(below, children[next[0]]...), append(next, children[next[0]]...)
	}
	return below, nil
}

// kin is what a process's stat says of its family.
type kin struct {
	parent int
	ended  time.Duration // what its children used that have ended
}

func kinOf(pid int) (kin, error) {
	_, fields, err := Stat("/proc", pid)
	if err != nil {
		return kin{}, err
	}
	parent, errParent := strconv.Atoi(fields[StatParent])
	user, errUser := strconv.ParseInt(fields[StatEndedUser], 10, 64)
	system, errSystem := strconv.ParseInt(fields[StatEndedUser+1], 10, 64)
	return kin{parent, time.Duration(user+system) * Tick}, errors.Join(errParent, errUser, errSystem)
}

// FamilyCPU is the processor time that processes have used so far: what their clocks say, and what the kernel has summed up, in ticks,
// of their children that have ended. A process that has ended counts no more.
func FamilyCPU(pids []int) (sum time.Duration, err error) {
	for _, pid := range pids {
		used, err := ProcessCPU(pid)
		if err == nil {
			sum += used
			var k kin
			k, err = kinOf(pid)
			sum += k.ended
		}
		if err != nil && !errors.Is(err, unix.ESRCH) && !errors.Is(err, unix.EINVAL) && !errors.Is(err, fs.ErrNotExist) {
			return 0, err
		}
	}
	return sum, nil
}
