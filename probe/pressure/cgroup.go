package pressure

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/procfs"

	"netdelta/internal/machine"
	"netdelta/internal/procfile"
)

// limited is a control group that limits processor time.
type limited struct {
	machine.ControlGroup
	stat        *procfile.File // cpu.stat; nil once it can't be read any more
	known       bool           // first and last
	first, last throttling
}

// Quota is a limit on processor time that stopped this process.
type Quota struct {
	// File holds the limit, and Processors is what it allows; 0 where that can't be read.
	File       string
	Processors float64
	// Times is how often the process was stopped since the first sample, and Span for how long, summed over the processors.
	Times int64
	Span  time.Duration
}

// Quotas are the limits on processor time that stopped this process between the first sample and the last one.
func (r *Reader) Quotas() []Quota {
	var all []Quota
	for _, g := range r.groups {
		q := Quota{Times: g.last.times - g.first.times, Span: g.last.span - g.first.span}
		if q.Times > 0 {
			q.File, q.Processors = limitOf(g.ControlGroup)
			all = append(all, q)
		}
	}
	return all
}

// limitOf is the file that limits the processor time of a control group, and how many processors it allows; 0 where it can't be read.
func limitOf(g machine.ControlGroup) (file string, processors float64) {
	var quota, period float64
	if g.Unified {
		file = filepath.Join(g.Dir, "cpu.max")
		text, _ := os.ReadFile(file)
		_, _ = fmt.Sscan(string(text), &quota, &period)
	} else {
		file = filepath.Join(g.Dir, "cpu.cfs_quota_us")
		text, _ := os.ReadFile(file)
		_, _ = fmt.Sscan(string(text), &quota)
		text, _ = os.ReadFile(filepath.Join(g.Dir, "cpu.cfs_period_us"))
		_, _ = fmt.Sscan(string(text), &period)
	}
	if quota <= 0 || period <= 0 {
		return file, 0
	}
	return file, quota / period
}

// openGroups opens cpu.stat of this process's control group and of all above it, in each hierarchy that limits processor time:
// a limit stops all below it, and is counted where it was set. There are none where control groups are not to be seen.
func openGroups(root string) ([]limited, error) {
	proc, err := procfs.NewFS(root)
	if err != nil {
		return nil, err
	}
	self, err := proc.Self()
	if missing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("finding this process: %w", err)
	}
	groups, err := self.Cgroups()
	if missing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("finding this process's control groups: %w", err)
	}
	mounts, err := self.MountInfo()
	if err != nil {
		return nil, fmt.Errorf("finding this process's control groups: %w", err)
	}
	var open []limited
	for _, g := range machine.ControlGroups(groups, mounts, "cpu") {
		c, err := openCounters(filepath.Join(g.Dir, "cpu.stat"))
		if err != nil {
			for _, o := range open {
				err = errors.Join(err, o.stat.Close())
			}
			return nil, err
		}
		if c == nil {
			continue
		}
		// The topmost group of version 2 has a cpu.stat, but no limit.
		if text, err := c.Read(); err == nil && bytes.Contains(text, []byte("nr_throttled")) {
			open = append(open, limited{ControlGroup: g, stat: c})
		} else if err := c.Close(); err != nil {
			return nil, err
		}
	}
	return open, nil
}

// lines calls f with each line's fields until f gives an error.
func lines(text []byte, f func(fields [][]byte) error) error {
	var fields [][]byte
	for line := range bytes.Lines(text) {
		fields = fields[:0]
		for field := range bytes.FieldsSeq(line) {
			fields = append(fields, field)
		}
		if len(fields) == 0 {
			continue
		}
		if err := f(fields); err != nil {
			return err
		}
	}
	return nil
}

// span is a number of units of time. A counter that is too large for a duration is no time of any machine.
func span(digits []byte, of time.Duration) (time.Duration, error) {
	n, err := strconv.ParseInt(string(digits), 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64/int64(of) {
		return 0, fmt.Errorf("%q is not a time in units of %v", digits, of)
	}
	return time.Duration(n) * of, nil
}

// parsePSI reads the total of the line "some" of /proc/pressure/cpu, in microseconds. See the kernel's
// Documentation/accounting/psi.rst.
func parsePSI(text []byte) (total time.Duration, err error) {
	found := false
	err = lines(text, func(fields [][]byte) error {
		if string(fields[0]) != "some" {
			return nil
		}
		for _, f := range fields[1:] {
			if digits, ok := bytes.CutPrefix(f, []byte("total=")); ok {
				found = true
				total, err = span(digits, time.Microsecond)
				return err
			}
		}
		return nil
	})
	if err == nil && !found {
		err = errors.New("it has no total")
	}
	return total, err
}

// parseSchedule sums what tasks have waited for the given processors (none: all) in /proc/schedstat: the eighth figure of a
// processor's line, in nanoseconds. See the kernel's Documentation/scheduler/sched-stats.rst.
func parseSchedule(text []byte, cpus []int) (sum time.Duration, err error) {
	const placeWaited = 8
	err = lines(text, func(fields [][]byte) error {
		number, found := bytes.CutPrefix(fields[0], []byte("cpu"))
		if !found {
			return nil
		}
		id, err := strconv.Atoi(string(number))
		if err != nil {
			return fmt.Errorf("%q is not a processor", fields[0])
		}
		if len(cpus) > 0 && !slices.Contains(cpus, id) {
			return nil
		}
		if len(fields) <= placeWaited {
			return fmt.Errorf("processor %d has %d figures, want %d", id, len(fields)-1, placeWaited)
		}
		waited, err := span(fields[placeWaited], time.Nanosecond)
		sum += waited
		return err
	})
	return sum, err
}

// throttling is how often a control group had used up its limit, and for how long it then stood still.
type throttling struct {
	times int64
	span  time.Duration
}

// parseThrottling reads a control group's cpu.stat, of version 2 (throttled_usec) or 1 (throttled_time, in nanoseconds). A
// group without a limit has neither.
func parseThrottling(text []byte) (throttling, error) {
	var t throttling
	err := lines(text, func(fields [][]byte) (err error) {
		if len(fields) < 2 {
			return nil
		}
		switch string(fields[0]) {
		case "nr_throttled":
			t.times, err = strconv.ParseInt(string(fields[1]), 10, 64)
		case "throttled_usec":
			t.span, err = span(fields[1], time.Microsecond)
		case "throttled_time":
			t.span, err = span(fields[1], time.Nanosecond)
		}
		return err
	})
	return t, err
}
