// Package clock reads time inside a measured loop: from the processor's time stamp counter where the kernel itself trusts
// it, and from the kernel's monotonic clock elsewhere. Reading it neither allocates nor grows the stack, so that it may be
// called where the Go scheduler believes the thread to be in a system call.
package clock

import (
	"bytes"
	"math/bits"
	"os"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Clock turns ticks into time. It is a plain value and may be copied into memory that the Go runtime does not manage.
// The zero value counts nanoseconds of the kernel's monotonic clock.
type Clock struct {
	// counter says that ticks come from the time stamp counter.
	counter bool
	// toNS is nanoseconds per tick and toTicks ticks per nanosecond, as fixed-point numbers with 32 binary places.
	toNS, toTicks uint64
}

// one is 1 as a fixed-point number with 32 binary places.
const one = 1 << 32

// System is the best clock of this machine. It is calibrated once in a process, which takes some 10 ms.
func System() Clock { return system() }

// system holds the calibration for the life of the process: the counter's rate does not change.
var system = sync.OnceValue(func() Clock {
	if !haveCounter || !KernelTrustsCounter() {
		return Kernel()
	}
	rate, ok := calibrate(10 * time.Millisecond)
	if !ok {
		return Kernel()
	}
	return Clock{counter: true, toNS: uint64(one / rate), toTicks: uint64(one * rate)}
})

// Kernel is the kernel's monotonic clock, read through the vDSO where there is one.
func Kernel() Clock { return Clock{toNS: one, toTicks: one} }

// Now is the monotonic clock of the kernel, by which programs of one machine can compare their times.
func Now() time.Duration { return time.Duration(nanotime()) }

// Counter says whether ticks come from the time stamp counter.
func (c *Clock) Counter() bool { return c.counter }

// String names the source of time.
func (c *Clock) String() string {
	if c.counter {
		return "tsc"
	}
	return "clock_gettime"
}

// Ticks is the time now, in ticks since an arbitrary start.
//
//go:nosplit
//go:norace
func (c *Clock) Ticks() int64 {
	if c.counter {
		return readCounter()
	}
	return nanotime()
}

// Nanoseconds turns a span in ticks into nanoseconds; negative spans give 0.
//
//go:nosplit
//go:norace
func (c *Clock) Nanoseconds(ticks int64) int64 { return scale(ticks, c.toNS) }

// Span turns a duration into ticks; negative durations give 0.
//
//go:nosplit
//go:norace
func (c *Clock) Span(d time.Duration) int64 { return scale(int64(d), c.toTicks) }

//go:nosplit
//go:norace
func scale(v int64, by uint64) int64 {
	if v <= 0 || by == one {
		return max(v, 0)
	}
	high, low := bits.Mul64(uint64(v), by)
	return int64(high<<32 | low>>32)
}

// KernelTrustsCounter says whether the counter runs at one rate, in step on all processors, in all power states: the kernel
// has checked it if it uses it as its own clock source.
func KernelTrustsCounter() bool {
	source, err := os.ReadFile("/sys/devices/system/clocksource/clocksource0/current_clocksource")
	if err != nil || string(bytes.TrimSpace(source)) != "tsc" {
		return false
	}
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return false
	}
	first, _, _ := bytes.Cut(info, []byte("\n\n"))
	return bytes.Contains(first, []byte("constant_tsc")) && bytes.Contains(first, []byte("nonstop_tsc"))
}

// calibrate measures ticks per nanosecond of CLOCK_MONOTONIC_RAW, over about span. It fails when the machine is so busy
// that no pair of readings is close enough.
func calibrate(span time.Duration) (ticksPerNS float64, ok bool) {
	t0, n0, w0 := readBoth()
	time.Sleep(span)
	t1, n1, w1 := readBoth()
	if n1 <= n0 || t1 <= t0 {
		return 0, false
	}
	rate := float64(t1-t0) / float64(n1-n0)
	// An error above 100 ppm is no calibration.
	if float64(w0+w1)/float64(t1-t0) > 1e-4 {
		return 0, false
	}
	return rate, true
}

// readBoth reads both clocks at one moment: the reading of the kernel's clock is centred between two readings of the counter,
// and the closest of several such readings is taken. width is how far apart those were, in ticks.
func readBoth() (ticks, ns, width int64) {
	width = 1 << 62
	for range 64 {
		before := readCounter()
		now := rawNanoseconds()
		after := readCounter()
		if w := after - before; w < width {
			ticks, ns, width = before+w/2, now, w
		}
	}
	return ticks, ns, width
}

func rawNanoseconds() int64 {
	var ts unix.Timespec
	_, _, errno := unix.RawSyscall(unix.SYS_CLOCK_GETTIME, unix.CLOCK_MONOTONIC_RAW, uintptr(unsafe.Pointer(&ts)), 0)
	if errno != 0 {
		return 0
	}
	return ts.Nano()
}

// nanotime is the runtime's own reading of CLOCK_MONOTONIC: through the vDSO, without growing the stack.
//
//go:linkname nanotime runtime.nanotime
func nanotime() int64
