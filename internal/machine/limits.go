package machine

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"netdelta/internal/procfile"
	"netdelta/unit"
)

// What this program takes at the least, whatever it is called for. Its runtime has no answer to a thread or to memory that it does not
// get: it ends with a trace of its stacks. So there must be more than it usually takes.
const (
	leastTasks = 64
	leastSpace = 2 * unit.GiB
)

// CheckLimits refuses limits of this process under which the program could end at any moment.
func CheckLimits() error {
	var space unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_AS, &space); err != nil {
		return fmt.Errorf("read the limit of the address space: %w", err)
	}
	if space.Cur < uint64(leastSpace) {
		return fmt.Errorf("the limit of the address space is %v, and this program takes %v: raise it with ulimit -v unlimited, or LimitAS= of a service",
			unit.Bytes(space.Cur), leastSpace)
	}
	if err := checkUserTasks(); err != nil {
		return err
	}
	self, err := procfs.Self()
	if err != nil {
		return nil //nolint:nilerr // without /proc nothing can be told; who needs it says so
	}
	groups, err := self.Cgroups()
	if err != nil {
		return nil //nolint:nilerr // likewise
	}
	mounts, err := procfs.GetMounts()
	if err != nil {
		return nil //nolint:nilerr // likewise
	}
	return checkGroupTasks(ControlGroups(groups, mounts, "pids"))
}

// checkGroupTasks refuses control groups with too little room for processes and threads.
func checkGroupTasks(groups []ControlGroup) error {
	for _, g := range groups {
		path := filepath.Join(g.Dir, "pids.max")
		limit, limited := number(path)
		used, known := number(filepath.Join(g.Dir, "pids.current"))
		if limited && known && limit-used < leastTasks {
			return fmt.Errorf("the control group allows %d processes and threads (%s), of which %d are there, and this program takes %d more: "+
				"raise pids.max, TasksMax= of a service or --pids-limit of a container", int64(limit), path, int64(used), leastTasks)
		}
	}
	return nil
}

// muchTasks is a limit of processes that needs no count of those that there are.
const muchTasks = 4096

// checkUserTasks refuses a user's limit of processes and threads that is nearly used up. It does not hold for root.
func checkUserTasks() error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NPROC, &limit); err != nil {
		return fmt.Errorf("read the limit of processes: %w", err)
	}
	if os.Geteuid() == 0 || limit.Cur >= muchTasks {
		return nil
	}
	used := tasksOf(os.Getuid())
	if int(limit.Cur)-used >= leastTasks {
		return nil
	}
	return fmt.Errorf("this user may have %d processes and threads, of which %d are there, and this program takes %d more: "+
		"raise the limit with ulimit -u 4096, or LimitNPROC= of a service", limit.Cur, used, leastTasks)
}

// tasksOf is how many processes and threads a user has, as far as they can be seen.
func tasksOf(uid int) int {
	pids, err := procfile.Processes("/proc")
	if err != nil {
		return 0
	}
	sum := 0
	for _, pid := range pids {
		info, err := os.Stat("/proc/" + strconv.Itoa(pid))
		if err != nil || int(info.Sys().(*syscall.Stat_t).Uid) != uid {
			continue
		}
		if _, fields, err := procfile.Stat("/proc", pid); err == nil {
			n, err := strconv.Atoi(fields[procfile.StatThreads])
			if err == nil {
				sum += n
			}
		}
	}
	return sum
}
