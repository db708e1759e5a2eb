// Package pressure watches the machine while a workload is measured: processor pressure (PSI), stolen time, soft
// interrupts and throttling. It tells which bursts were disturbed by something that is not part of the experiment. It never
// looks at the measured figures themselves, since to drop bursts by their outcome would bias every delta.
package pressure

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// Reader reads the kernel's counters.
type Reader struct {
	proc procfs.FS
	now  func() time.Time
	// cpus are the processors that the workload runs on; empty means all.
	cpus []int
}

// NewReader reads from the proc file system at root ("/proc"), for the given processors; no processor means all.
func NewReader(root string, cpus []int) (*Reader, error) {
	proc, err := procfs.NewFS(root)
	if err != nil {
		return nil, fmt.Errorf("opening %s to watch the machine: %w", root, err)
	}
	return &Reader{proc: proc, now: time.Now, cpus: cpus}, nil
}

// Sample is the state of the counters at one moment.
type Sample struct {
	at       time.Time
	waiting  time.Duration // total time in which some task waited for a processor
	hasPSI   bool
	steal    float64 // seconds, over the watched processors
	softirq  float64
	watching int // how many processors are watched
}

// Read takes a sample. A kernel without pressure information (CONFIG_PSI) gives samples without it, not an error.
func (r *Reader) Read() (Sample, error) {
	s := Sample{at: r.now()}
	stat, err := r.proc.Stat()
	if err != nil {
		return Sample{}, fmt.Errorf("reading processor times: %w", err)
	}
	for id, cpu := range stat.CPU {
		if len(r.cpus) > 0 && !slices.Contains(r.cpus, int(id)) {
			continue
		}
		s.steal += cpu.Steal
		s.softirq += cpu.SoftIRQ
		s.watching++
	}
	psi, err := r.proc.PSIStatsForResource("cpu")
	switch {
	case err == nil && psi.Some != nil:
		s.waiting, s.hasPSI = time.Duration(psi.Some.Total)*time.Microsecond, true
	case err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.EOPNOTSUPP):
		return Sample{}, fmt.Errorf("reading processor pressure: %w", err)
	}
	return s, nil
}

// Load is what happened between two samples, as shares of the time between them (0 to 1).
type Load struct {
	Waiting float64 // some task waited for a processor
	Steal   float64 // the hypervisor ran something else
	Softirq float64 // soft interrupts, on the watched processors
}

// Since is the load between an earlier sample and this one; a span of zero has none.
func (s Sample) Since(earlier Sample) Load {
	span := s.at.Sub(earlier.at).Seconds()
	if span <= 0 || s.watching == 0 {
		return Load{}
	}
	cpuSpan := span * float64(s.watching)
	return Load{
		Waiting: (s.waiting - earlier.waiting).Seconds() / span,
		Steal:   (s.steal - earlier.steal) / cpuSpan,
		Softirq: (s.softirq - earlier.softirq) / cpuSpan,
	}
}

// ProcessCPU is the processor time that a process of this machine has used, in the kernel and outside, precise to the
// nanosecond where the kernel's scheduler clock is. See clock_getcpuclockid(3) for the form of the clock's number.
func ProcessCPU(pid int) (time.Duration, error) {
	const (
		schedClock = 2
		maxPID     = 1 << 22 // the kernel's own limit; beyond it the clock's number would be another's
	)
	if pid <= 0 || pid > maxPID {
		return 0, fmt.Errorf("reading the processor time of process %d: no process has this number", pid)
	}
	var ts unix.Timespec
	if err := unix.ClockGettime(int32(^pid)<<3|schedClock, &ts); err != nil {
		return 0, fmt.Errorf("reading the processor time of process %d: %w", pid, err)
	}
	return time.Duration(ts.Nano()), nil
}
