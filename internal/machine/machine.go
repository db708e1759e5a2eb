// Package machine describes the machine that netdelta runs on: kernel, processor, memory, clock. It only reads.
package machine

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"netdelta/result"
	"netdelta/unit"
)

// Describe reads what is known of this machine. Single facts that can't be read are left empty; an error means that the
// kernel's own basic files are missing.
func Describe(version string) (result.Environment, error) {
	proc, err := procfs.NewFS("/proc")
	if err != nil {
		return result.Environment{}, fmt.Errorf("describing this machine: %w", err)
	}
	cpus, err := proc.CPUInfo()
	if err != nil {
		return result.Environment{}, fmt.Errorf("describing the processor: %w", err)
	}
	mem, err := proc.Meminfo()
	if err != nil {
		return result.Environment{}, fmt.Errorf("describing the memory: %w", err)
	}
	var uts unix.Utsname
	if err := unix.Uname(&uts); err != nil {
		return result.Environment{}, fmt.Errorf("asking for the kernel's name: %w", err)
	}
	e := result.Environment{
		Netdelta:  version,
		GoVersion: runtime.Version(),
		Kernel:    unix.ByteSliceToString(uts.Release[:]),
		Arch:      unix.ByteSliceToString(uts.Machine[:]),
		Hostname:  unix.ByteSliceToString(uts.Nodename[:]),
		Boot:      Fact("/proc/sys/kernel/random/boot_id"),
		OS:        osName("/etc/os-release"),
		Virtual:   hypervisor(cpus),
		Clock:     Fact("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
		CPU: result.CPU{
			Count:       len(cpus),
			Governor:    Fact("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
			Mitigations: mitigations("/sys/devices/system/cpu/vulnerabilities"),
			Idle:        deepest("/sys/devices/system/cpu/cpu0/cpuidle"),
			NUMA:        count("/sys/devices/system/node/node[0-9]*"),
			Isolated:    Fact("/sys/devices/system/cpu/isolated"),
		},
	}
	if len(cpus) > 0 {
		e.CPU.Model = cpus[0].ModelName
	}
	if mem.MemTotalBytes != nil {
		e.Memory = unit.Bytes(*mem.MemTotalBytes)
	}
	return e, nil
}

// AllowedCPUs are the processors that this process may run on, in ascending order.
func AllowedCPUs() ([]int, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, fmt.Errorf("asking which processors may be used: %w", err)
	}
	var cpus []int
	for cpu := 0; len(cpus) < set.Count(); cpu++ {
		if set.IsSet(cpu) {
			cpus = append(cpus, cpu)
		}
	}
	return cpus, nil
}

// Confine keeps all threads of this process on the given processors. Threads made later inherit the confinement.
func Confine(cpus []int) error {
	var set unix.CPUSet
	for _, cpu := range cpus {
		set.Set(cpu)
	}
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return fmt.Errorf("listing this process's threads: %w", err)
	}
	for _, t := range tasks {
		var tid int
		if _, err := fmt.Sscan(t.Name(), &tid); err != nil {
			return fmt.Errorf("reading thread number %q: %w", t.Name(), err)
		}
		if err := unix.SchedSetaffinity(tid, &set); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("confining thread %d to processors %v: %w", tid, cpus, err)
		}
	}
	return nil
}

// Fact is the content of a one-line file, or "" where this machine has none.
func Fact(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

func osName(path string) string {
	for line := range strings.Lines(Fact(path) + "\n") {
		if name, ok := strings.CutPrefix(line, "PRETTY_NAME="); ok {
			return strings.Trim(strings.TrimSpace(name), `"`)
		}
	}
	return ""
}

// hypervisor names what this machine runs on, "" for bare metal.
func hypervisor(cpus []procfs.CPUInfo) string {
	virtual := false
	for _, c := range cpus {
		for _, f := range c.Flags {
			virtual = virtual || f == "hypervisor"
		}
	}
	if !virtual {
		return ""
	}
	for _, path := range []string{"/sys/hypervisor/type", "/sys/class/dmi/id/sys_vendor"} {
		if name := Fact(path); name != "" {
			return name
		}
	}
	return "unnamed hypervisor"
}

// mitigations lists the processor's weaknesses for which the kernel pays with time on every system call.
func mitigations(dir string) string {
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		return ""
	}
	var active []string
	for _, f := range files {
		if strings.HasPrefix(Fact(f), "Mitigation") {
			active = append(active, filepath.Base(f))
		}
	}
	return strings.Join(active, " ")
}

// CheckProc says what to do where /proc, from which all that is known of a machine comes, is not there.
func CheckProc() error {
	var at unix.Statfs_t
	if err := unix.Statfs("/proc", &at); err != nil {
		return fmt.Errorf("look at /proc: %w; mount it with mount -t proc proc /proc", err)
	}
	if at.Type != unix.PROC_SUPER_MAGIC {
		return errors.New("/proc is not mounted, from which all that is known of this machine comes; mount it with mount -t proc proc /proc")
	}
	return nil
}

// CheckScheduling says what to do where this program has a real-time policy: agents inherit it, and one end of a connection that spins
// then keeps its processor from the other.
func CheckScheduling() error {
	attr, err := unix.SchedGetAttr(0, 0)
	if err != nil {
		return fmt.Errorf("read the scheduling policy of this program: %w", err)
	}
	switch attr.Policy {
	case unix.SCHED_FIFO, unix.SCHED_RR, unix.SCHED_DEADLINE:
		return errors.New("this program runs under a real-time scheduling policy, by which two ends on one processor wait for each other; start it without chrt, or with chrt --other 0")
	}
	return nil
}

// OpenFiles is how many files this program may have open. The runtime has raised the limit as far as this user may.
func OpenFiles() (int, error) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 0, fmt.Errorf("read the limit of open files: %w", err)
	}
	return int(min(limit.Cur, math.MaxInt32)), nil
}

// MoreOpenFiles and MoreMemory are how a user raises a limit.
const (
	MoreOpenFiles = "raise the limit of open files: ulimit -n 4096, or LimitNOFILE= of a service"
	MoreMemory    = "free some, or raise the limit of the control group or container"
)

// Shortage is what to do about an error that says that the machine is short of something, "" for other errors.
func Shortage(err error) string {
	switch {
	case errors.Is(err, unix.EMFILE):
		return MoreOpenFiles
	case errors.Is(err, unix.ENFILE):
		return "raise the machine's limit of open files: sysctl -w fs.file-max=1000000"
	case errors.Is(err, unix.ENOMEM):
		return "free some memory, or raise the limit of the control group or container"
	}
	return ""
}

// FreeMemory is what programs of this machine can still take without swapping, as the kernel estimates it (MemAvailable), and at most
// what this program's control groups leave it.
func FreeMemory() (unit.Bytes, error) {
	proc, err := procfs.NewDefaultFS()
	if err != nil {
		return 0, fmt.Errorf("read how much memory is free: %w", err)
	}
	info, err := proc.Meminfo()
	if err != nil {
		return 0, fmt.Errorf("read how much memory is free: %w", err)
	}
	if info.MemAvailableBytes == nil {
		return 0, errors.New("read how much memory is free: /proc/meminfo has no MemAvailable")
	}
	return min(unit.Bytes(*info.MemAvailableBytes), controlled()), nil
}

// Counters are what this machine's kernel counts of its processors, as text, for somebody elsewhere who watches it. What is not to
// be had is empty.
type Counters struct {
	// At is when they were read, by the machine's monotonic clock.
	At time.Duration `json:"at_ns"`
	// Stat, Pressure and Schedule are /proc/stat, /proc/pressure/cpu and /proc/schedstat, as far as they are about processors.
	Stat     string `json:"stat"`
	Pressure string `json:"pressure,omitempty"`
	Schedule string `json:"schedule,omitempty"`
	// Limit is cpu.stat of the control group that the reader sees as its own: in a container, the container's.
	Limit string `json:"limit,omitempty"`
	// Interrupts are those that were asked for, by the number of the processor that took them.
	Interrupts []uint64 `json:"interrupts,omitempty"`
}

// ReadCounters reads this machine's counters, and counts the given interrupts.
func ReadCounters(of Interrupts) (Counters, error) {
	c := Counters{Interrupts: of.read("/proc/interrupts")}
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return c, fmt.Errorf("reading the processors' times: %w", err)
	}
	c.Stat = about(stat, "cpu", "procs_running")
	for _, optional := range []struct {
		path  string
		lines []string
		into  *string
	}{
		{"/proc/pressure/cpu", []string{"some"}, &c.Pressure},
		{"/proc/schedstat", []string{"cpu"}, &c.Schedule},
		{"/sys/fs/cgroup/cpu.stat", []string{"nr_throttled", "throttled_"}, &c.Limit},
		{"/sys/fs/cgroup/cpu/cpu.stat", []string{"nr_throttled", "throttled_"}, &c.Limit},
	} {
		text, err := os.ReadFile(optional.path)
		switch {
		case err == nil:
			*optional.into += about(text, optional.lines...)
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission), errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENOTDIR):
		default:
			return c, fmt.Errorf("reading what the machine counts: %w", err)
		}
	}
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return c, fmt.Errorf("reading the clock: %w", err)
	}
	c.At = time.Duration(now.Nano())
	return c, nil
}

// about are the lines of a text that begin in one of these ways: what the kernel counts of interrupts alone is longer than all else.
func about(text []byte, beginnings ...string) string {
	var kept bytes.Buffer
	for line := range bytes.Lines(text) {
		for _, b := range beginnings {
			if bytes.HasPrefix(line, []byte(b)) {
				kept.Write(line)
				break
			}
		}
	}
	return kept.String()
}

// deepest is the idle state from which a processor takes longest to wake, of those that are allowed.
func deepest(dir string) (state string) {
	states, _ := filepath.Glob(filepath.Join(dir, "state*"))
	most := 0
	for _, s := range states {
		if us, err := strconv.Atoi(Fact(filepath.Join(s, "latency"))); err == nil && us > most && Fact(filepath.Join(s, "disable")) != "1" {
			most, state = us, fmt.Sprintf("%s, %d µs", Fact(filepath.Join(s, "name")), us)
		}
	}
	return state
}

func count(pattern string) int {
	all, _ := filepath.Glob(pattern)
	return len(all)
}

// idleMost is how long a processor may take to wake without being a matter: less than a round trip of a fast network.
const idleMost = 10 // µs

// Settings are what the doctor finds of a machine's clock, idle states and governor. Where Fix is "", all is well.
func Settings(e result.Environment) (all []result.Finding) {
	if e.Clock != "" {
		all = append(all, clock(e.Clock))
	}
	if e.CPU.Idle != "" {
		all = append(all, idle(e.CPU.Idle))
	}
	if g := e.CPU.Governor; g != "" && g != "performance" {
		all = append(all, result.Finding{
			Topic: "governor", Says: g + ": the processors' speed follows the load", Fix: "cpupower frequency-set -g performance, for the time of the run",
		})
	}
	return all
}

// clock is about a clock source.
func clock(source string) result.Finding {
	f := result.Finding{Topic: "clock", Says: source}
	if source != "tsc" && source != "arch_sys_counter" {
		f.Says += ": reading it costs more than a counter in the processor"
		f.Fix = "differences stay right; if the processor's own counter is stable, boot with clocksource=tsc"
	}
	return f
}

// idle is about the deepest idle state, as Describe names it.
func idle(state string) result.Finding {
	name, wakes, _ := strings.Cut(state, ", ")
	f := result.Finding{Topic: "idle states", Says: fmt.Sprintf("down to %s, from which a processor takes %s to wake", name, wakes)}
	if us, err := strconv.Atoi(strings.TrimSuffix(wakes, " µs")); err == nil && us > idleMost {
		f.Fix = fmt.Sprintf("cpupower idle-set -D %d, for the time of the run", idleMost)
	}
	return f
}
