package machine

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

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
}

// ReadCounters reads this machine's counters.
func ReadCounters() (Counters, error) {
	var c Counters
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
