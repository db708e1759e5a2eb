// Package procstat reads the processors' times from /proc/stat, fast enough to be done around every burst: the file stays
// open, only the processors in question are taken from it, and nothing is allocated.
//
// The kernel counts these times in ticks of a hundredth of a second (USER_HZ), so that a single difference of a few
// milliseconds says next to nothing: it is 0 or 10 ms. But the counters lose nothing between two readings, and so the sum of
// many differences is right to within the ticks at their edges, which fall to either side equally often.
package procstat

import (
	"bytes"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"time"

	"netdelta/internal/procfile"
)

// Times are sums over the processors that were asked for, since the machine was started.
type Times struct {
	Softirq time.Duration // in soft interrupts, ksoftirqd's with them where the kernel tells interrupts' time from threads'
	Steal   time.Duration // in which the hypervisor ran something else
	Busy    time.Duration // in which they ran something, or the hypervisor did
	Idle    time.Duration // in which they had nothing to run, waiting for a disk or not
	// Processors is how many of those asked for there are.
	Processors int
	// Running is how many threads of the whole machine were running or waiting for a processor at the moment of the reading,
	// the reader among them.
	Running int
}

// Reader reads a file stat of a proc file system. It is for one goroutine.
type Reader struct{ *procfile.File }

// Open opens the file in the proc file system at root ("/proc").
func Open(root string) (*Reader, error) {
	f, err := procfile.Open(filepath.Join(root, "stat"), 16<<10)
	if err != nil {
		return nil, fmt.Errorf("opening the processors' times: %w", err)
	}
	return &Reader{f}, nil
}

// Read sums the times of the given processors; none means all.
func (r *Reader) Read(cpus []int) (Times, error) {
	text, err := r.File.Read()
	if err != nil {
		return Times{}, fmt.Errorf("reading the processors' times: %w", err)
	}
	return Parse(text, cpus)
}

// The places of the times in a line of a processor, its name not counted. See proc_stat(5).
const (
	placeIdle    = 3
	placeWaiting = 4 // idle, while a disk works
	placeSoftirq = 6
	placeSteal   = 7
)

// Parse sums the times of the given processors (none: all) in the content of /proc/stat.
func Parse(text []byte, cpus []int) (Times, error) {
	var t Times
	for line := range bytes.Lines(text) {
		name, rest, _ := bytes.Cut(bytes.TrimSuffix(line, []byte("\n")), []byte(" "))
		if number, found := bytes.CutPrefix(name, []byte("cpu")); found && len(number) > 0 {
			id, ok := natural(number)
			if !ok {
				return Times{}, fmt.Errorf("the processors' times have a processor %q: not a number", number)
			}
			if len(cpus) > 0 && !slices.Contains(cpus, id) {
				continue
			}
			if err := t.add(rest); err != nil {
				return Times{}, fmt.Errorf("the times of processor %d: %w", id, err)
			}
		}
		if bytes.Equal(name, []byte("procs_running")) {
			var ok bool
			if t.Running, ok = natural(bytes.TrimSpace(rest)); !ok {
				return Times{}, fmt.Errorf("procs_running is %q: not a number", rest)
			}
		}
	}
	return t, nil
}

// add takes the times of one processor. Old kernels have fewer columns; what they lack is zero.
func (t *Times) add(columns []byte) error {
	for place := 0; len(columns) > 0; {
		var column []byte
		column, columns, _ = bytes.Cut(columns, []byte(" "))
		if len(column) == 0 {
			continue
		}
		ticks, ok := natural(column)
		if !ok || ticks > int(math.MaxInt64/procfile.Tick) {
			return fmt.Errorf("column %d is %q: not a number of ticks", place+1, column)
		}
		spent := time.Duration(ticks) * procfile.Tick
		switch place {
		case placeIdle, placeWaiting:
			t.Idle += spent
		case placeSoftirq:
			t.Softirq += spent
		case placeSteal:
			t.Steal += spent
		}
		if place != placeIdle && place != placeWaiting && place <= placeSteal { // guests' time, behind these, is in user time
			t.Busy += spent
		}
		place++
	}
	t.Processors++
	return nil
}

// natural is the number that the digits say; strconv would have to copy them.
func natural(digits []byte) (int, bool) {
	n := 0
	for _, d := range digits {
		if d < '0' || d > '9' || n > (math.MaxInt-9)/10 {
			return 0, false
		}
		n = 10*n + int(d-'0')
	}
	return n, len(digits) > 0
}
