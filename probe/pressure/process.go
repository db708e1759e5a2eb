package pressure

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

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
