// Package procfile reads files of the proc file system that are read so often, or by so small a program, that a library is too
// much: files that stay open, the status line of processes, and lists of processors.
package procfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// File is a file of the kernel's that stays open and is read many times. It is for one goroutine.
type File struct {
	file   *os.File
	buffer []byte
}

// Open opens a file for texts of some size; longer ones are read too.
func Open(path string, size int) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	return &File{file: f, buffer: make([]byte, size)}, nil
}

// Name is the path that the file was opened by.
func (f *File) Name() string { return f.file.Name() }

// Close closes the file.
func (f *File) Close() error { return f.file.Close() }

// Read returns the content of the file now, valid until the next call. It allocates only for a text that is longer than all before.
func (f *File) Read() ([]byte, error) {
	for {
		n, err := f.file.ReadAt(f.buffer, 0)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		if n < len(f.buffer) {
			return f.buffer[:n], nil
		}
		f.buffer = make([]byte, 2*len(f.buffer))
	}
}

// Places of fields in a process's stat, counted after its name. See proc_pid_stat(5).
const (
	StatState     = 0
	StatParent    = 1
	StatFlags     = 6
	StatUser      = 11 // processor time in programs, in ticks; that in the kernel follows
	StatEndedUser = 13 // processor time of children that have ended, in programs; that in the kernel follows
	StatThreads   = 17
	StatStart     = 19
)

// Tick is the unit in which the kernel counts processor time.
const Tick = 10 * time.Millisecond

// KernelThread is the flag of a thread of the kernel in a process's stat, which no program can set: PF_KTHREAD of linux/sched.h.
const KernelThread = 0x200000

// Stat reads a process's name and the fields of its stat after that, in the proc file system at root ("/proc"). There are at least
// as many fields as the places above.
func Stat(root string, pid int) (name string, fields []string, err error) {
	text, err := os.ReadFile(filepath.Join(root, strconv.Itoa(pid), "stat"))
	if err != nil {
		return "", nil, err
	}
	return ParseStat(text)
}

// ParseStat reads the text of a process's stat. A name may hold anything, parentheses and spaces too.
func ParseStat(text []byte) (name string, fields []string, err error) {
	begin, end := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
	if begin < 0 || end < begin {
		return "", nil, fmt.Errorf("the stat of a process is %q: it has no name", text)
	}
	if fields = strings.Fields(string(text[end+1:])); len(fields) <= StatStart {
		return "", nil, fmt.Errorf("the stat of a process is %q: too few figures", text)
	}
	return string(text[begin+1 : end]), fields, nil
}

// Processes lists the numbers of all processes that can be seen in the proc file system at root.
func Processes(root string) ([]int, error) {
	entries, err := os.ReadDir(root)
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// Children lists the processes that a process has started and that have not ended. A process that is gone has none.
func Children(pid int) []int {
	var pids []int
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // the pattern is well formed
	for _, task := range tasks {
		text, err := os.ReadFile(task)
		if err != nil {
			continue // the thread has ended
		}
		for _, field := range strings.Fields(string(text)) {
			if child, err := strconv.Atoi(field); err == nil {
				pids = append(pids, child)
			}
		}
	}
	return pids
}

// OnlineCPUs lists the processors that are online, also those that this program may not run on.
func OnlineCPUs() ([]int, error) {
	text, err := os.ReadFile("/sys/devices/system/cpu/online")
	if err != nil {
		return nil, fmt.Errorf("list the processors: %w", err)
	}
	return ParseCPUs(strings.TrimSpace(string(text)))
}

// ParseCPUs reads a list as the kernel writes it: "0-3,8".
func ParseCPUs(list string) ([]int, error) {
	var cpus []int
	for part := range strings.SplitSeq(list, ",") {
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		first, err1 := strconv.Atoi(from)
		last, err2 := strconv.Atoi(to)
		if err := errors.Join(err1, err2); err != nil || last < first {
			return nil, fmt.Errorf("the kernel's list of processors %q can't be read", list)
		}
		for c := first; c <= last; c++ {
			cpus = append(cpus, c)
		}
	}
	return cpus, nil
}

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

// Groups is where a pod sees its own control groups.
const Groups = "/sys/fs/cgroup"

// Starved is how many processes of a control group the kernel has killed for want of memory, 0 where it does not say. The group is the one
// that the folder shows: see Groups.
func Starved(groups string) int {
	for _, name := range []string{"memory.events", "memory/memory.oom_control"} {
		text, err := os.ReadFile(filepath.Join(groups, name))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			if count, is := strings.CutPrefix(line, "oom_kill "); is {
				n, _ := strconv.Atoi(strings.TrimSpace(count)) // the kernel's own number
				return n
			}
		}
	}
	return 0
}
