// Package pressure watches the machine while a workload is measured, and tells which bursts were disturbed by something that
// is not part of the experiment. It never looks at the measured figures themselves, since to drop bursts by their outcome
// would bias every delta.
//
// What is watched, each where the kernel gives it:
//
//   - time that the hypervisor took away (steal), and soft interrupts, on the watched processors: /proc/stat, in ticks of
//     10 ms, so that they speak of rounds and not of bursts;
//   - time in which some thread of the machine waited for a processor: pressure stall information, in microseconds;
//   - time that threads waited in the queues of the watched processors: /proc/schedstat, in nanoseconds (CONFIG_SCHEDSTATS);
//   - how many threads were ready to run when the span began and when it ended: only on kernels with neither of the two, since
//     two moments say little of what is between them;
//   - how often and how long the control groups of this process were throttled, because a limit on processor time (a quota, as
//     of a container) was used up: cpu.stat of both versions of cgroups.
//
// What is usual is found out at the start of a run (Calibrate): the experiment itself is a load. What the machine does without the
// experiment is read while nothing is measured (Load.Others).
package pressure

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"netdelta/internal/gather"
	host "netdelta/internal/machine"
	"netdelta/internal/procfile"
	"netdelta/probe/procstat"
	"netdelta/stats"
)

// Reader reads the kernel's counters. It is for one goroutine.
type Reader struct {
	now func() time.Time
	// cpus are the processors that the workload runs on; empty means all.
	cpus     []int
	stat     *procstat.Reader
	psi      *procfile.File // nil where the kernel has none
	schedule *procfile.File // nil where the kernel has none
	groups   []limited
}

// NewReader reads from the proc file system at root ("/proc"), for the given processors; no processor means all. What the
// kernel does not count is left out.
func NewReader(root string, cpus []int) (*Reader, error) {
	stat, err := procstat.Open(root)
	if err != nil {
		return nil, fmt.Errorf("watching the machine: %w", err)
	}
	r := &Reader{now: time.Now, cpus: cpus, stat: stat}
	if r.psi, err = openCounters(filepath.Join(root, "pressure/cpu")); err == nil {
		r.schedule, err = openCounters(filepath.Join(root, "schedstat"))
	}
	if err == nil {
		r.groups, err = openGroups(root)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("watching the machine: %w", err), r.Close())
	}
	return r, nil
}

// Close closes the kernel's files.
func (r *Reader) Close() error {
	errs := []error{r.stat.Close()}
	for _, c := range append([]*procfile.File{r.psi, r.schedule}, gather.Each(r.groups, func(g limited) *procfile.File { return g.stat })...) {
		if c != nil {
			errs = append(errs, c.Close())
		}
	}
	return errors.Join(errs...)
}

// openCounters opens a file, or returns nil where the kernel does not show it, or not to this program.
func openCounters(path string) (*procfile.File, error) {
	f, err := procfile.Open(path, 4096)
	if err == nil {
		if _, err = f.Read(); err != nil {
			err = errors.Join(err, f.Close())
		}
	}
	switch {
	case missing(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return f, nil
}

// missing says whether an error means that there is nothing to read: pressure information, for one, may be switched off.
func missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.EOPNOTSUPP)
}

// Sample is the state of the counters at one moment.
type Sample struct {
	at      time.Time
	times   procstat.Times // over the watched processors
	waiting time.Duration  // total time in which some task waited for a processor
	queued  time.Duration  // the sum of what tasks waited for a watched processor
	hasPSI  bool
	hasRun  bool // queued is known
	limits  throttling
}

// Read takes a sample, which costs some ten microseconds.
func (r *Reader) Read() (Sample, error) {
	s := Sample{at: r.now()}
	var err error
	if s.times, err = r.stat.Read(r.cpus); err != nil {
		return Sample{}, err
	}
	if r.psi != nil {
		text, err := r.psi.Read()
		if err == nil {
			err = s.addPressure(text)
		}
		if err != nil {
			return Sample{}, err
		}
	}
	if r.schedule != nil {
		text, err := r.schedule.Read()
		if err == nil {
			err = s.addSchedule(text, r.cpus)
		}
		if err != nil {
			return Sample{}, err
		}
	}
	s.limits, err = r.readGroups()
	return s, err
}

// addPressure reads the content of /proc/pressure/cpu.
func (s *Sample) addPressure(text []byte) (err error) {
	s.hasPSI = true
	if s.waiting, err = parsePSI(text); err != nil {
		return fmt.Errorf("processor pressure: %w", err)
	}
	return nil
}

// addSchedule reads the content of /proc/schedstat.
func (s *Sample) addSchedule(text []byte, cpus []int) (err error) {
	s.hasRun = true
	if s.queued, err = parseSchedule(text, cpus); err != nil {
		return fmt.Errorf("the processors' queues: %w", err)
	}
	return nil
}

// readGroups sums the throttling of the control groups. One that can't be read any more has been removed, and this process
// moved to another.
func (r *Reader) readGroups() (sum throttling, err error) {
	for i := range r.groups {
		g := &r.groups[i]
		if g.stat == nil {
			continue
		}
		text, err := g.stat.Read()
		if err != nil {
			_ = g.stat.Close() // it was only read
			g.stat = nil
			continue
		}
		t, err := parseThrottling(text)
		if err != nil {
			return throttling{}, fmt.Errorf("the control group's limit: %w", err)
		}
		if !g.known {
			g.known, g.first = true, t
		}
		g.last = t
		sum.times += t.times
		sum.span += t.span
	}
	return sum, nil
}

// Load is what happened between two samples: shares of the time between them, unless said otherwise. What the kernel does
// not tell is zero.
type Load struct {
	Waiting float64 // some task waited for a processor: 0 to 1
	Steal   float64 // the hypervisor ran something else: 0 to 1
	Softirq float64 // soft interrupts, on the watched processors: 0 to 1
	// Busy is the share of the watched processors' time in which they ran something or the hypervisor did: 0 to 1.
	Busy float64
	// Samples is how many ticks there were for Softirq to be counted in, which most kernels do by looking at each tick what
	// is running; zero where it is exact.
	Samples float64
	// Queue is how many tasks waited for a watched processor at a time, on average.
	Queue float64
	// Ready is how many threads of the machine ran or waited at the two moments, on average; zero where Waiting or Queue is
	// known.
	Ready float64
	// Throttled is the share of time for which this process's control groups had used up their limit, summed over the
	// processors that they ran on, and Throttles how often that happened.
	Throttled float64
	Throttles float64
}

// Since is the load between an earlier sample and this one; a span of zero has none.
func (s Sample) Since(earlier Sample) Load {
	span := s.at.Sub(earlier.at).Seconds()
	if span <= 0 || s.times.Processors == 0 {
		return Load{}
	}
	cpuSpan := span * float64(s.times.Processors)
	l := Load{
		Waiting:   (s.waiting - earlier.waiting).Seconds() / span,
		Steal:     (s.times.Steal - earlier.times.Steal).Seconds() / cpuSpan,
		Softirq:   (s.times.Softirq - earlier.times.Softirq).Seconds() / cpuSpan,
		Busy:      min(max((s.times.Busy-earlier.times.Busy).Seconds()/cpuSpan, 0), 1),
		Samples:   cpuSpan / procfile.Tick.Seconds(),
		Queue:     (s.queued - earlier.queued).Seconds() / cpuSpan,
		Throttled: max((s.limits.span-earlier.limits.span).Seconds()/span, 0),
		Throttles: max(float64(s.limits.times-earlier.limits.times), 0),
	}
	if !s.hasPSI && !s.hasRun {
		l.Ready = float64(s.times.Running+earlier.times.Running) / 2
	}
	return l
}

// Others is what other programs did in a span in which nothing was measured: the share of the time in which they kept the
// processors from a workload, 0 to 1. A workload that is pinned to the watched processors shares them with whatever runs there.
// One that is not pinned runs on any free processor, and waits only when none is free.
func (l Load) Others(pinned bool) float64 {
	if pinned {
		return l.Busy
	}
	return min(max(l.Waiting, l.Steal), 1)
}

// SampleOf is a sample of another machine, of all its processors, from what was read there. Two samples can only be held against
// each other when both are of the same machine.
func SampleOf(c host.Counters) (Sample, error) {
	s := Sample{at: time.Unix(0, 0).Add(c.At)}
	var err error
	if s.times, err = procstat.Parse([]byte(c.Stat), nil); err != nil {
		return Sample{}, err
	}
	if c.Pressure != "" {
		err = s.addPressure([]byte(c.Pressure))
	}
	if c.Schedule != "" && err == nil {
		err = s.addSchedule([]byte(c.Schedule), nil)
	}
	if err != nil {
		return Sample{}, err
	}
	if s.limits, err = parseThrottling([]byte(c.Limit)); err != nil {
		return Sample{}, fmt.Errorf("the control group's limit: %w", err)
	}
	return s, nil
}

// Worst is what happened on several machines in the same time: each figure from the machine where it was highest, and of the
// samples of soft interrupts the fewest.
func Worst(loads []Load) Load {
	var worst Load
	for i, l := range loads {
		if i == 0 {
			worst = l
			continue
		}
		worst = Load{
			Waiting: max(worst.Waiting, l.Waiting), Steal: max(worst.Steal, l.Steal), Softirq: max(worst.Softirq, l.Softirq),
			Busy: max(worst.Busy, l.Busy), Samples: min(worst.Samples, l.Samples), Queue: max(worst.Queue, l.Queue), Ready: max(worst.Ready, l.Ready),
			Throttled: max(worst.Throttled, l.Throttled), Throttles: max(worst.Throttles, l.Throttles),
		}
	}
	return worst
}

// Reasons for which a burst is left out of deltas.
const (
	ReasonSteal     = "steal"
	ReasonPressure  = "cpu-pressure"
	ReasonSoftirq   = "softirq"
	ReasonPreempted = "preempted"
	ReasonThrottled = "throttled"
	ReasonRunQueue  = "run-queue"
)

// How far a reading may lie from the calibrated one before it counts as a disturbance: this many median absolute
// deviations, and at least this share of time. The floor keeps a very quiet calibration from calling trifles disturbances.
const (
	deviations   = 6
	waitingFloor = 0.10
	stealFloor   = 0.02
	softirqFloor = 0.10
	shareFloor   = 0.10
	// One more task that waits for a processor all the time counts, and so does one that does so a quarter of the time.
	queueFloor = 0.25
	readyFloor = 1
	// Any throttling counts where there was none.
	throttledFloor = 0.01
	throttlesFloor = 0.5
)

// Threshold tells disturbed spans from quiet ones, by what the machine was like when the run began.
type Threshold struct {
	waiting, steal, softirq, queue, ready, throttled, throttles float64
}

// Calibrate sets the threshold from spans measured at the start of a run, while no other program kept the processors busy: a
// load that is there from the start would count as usual.
func Calibrate(loads []Load) Threshold {
	limit := func(pick func(Load) float64, floor float64) float64 {
		values := gather.Each(loads, pick)
		return stats.Median(values) + max(floor, deviations*stats.MAD(values))
	}
	return Threshold{
		waiting: limit(func(l Load) float64 { return l.Waiting }, waitingFloor),
		steal:   limit(func(l Load) float64 { return l.Steal }, stealFloor),
		softirq: limit(func(l Load) float64 { return l.Softirq }, softirqFloor),
		queue:   limit(func(l Load) float64 { return l.Queue }, queueFloor),
		ready:   limit(func(l Load) float64 { return l.Ready }, readyFloor),

		throttled: limit(func(l Load) float64 { return l.Throttled }, throttledFloor),
		throttles: limit(func(l Load) float64 { return l.Throttles }, throttlesFloor),
	}
}

// Disturbed gives the reason why a span can't be trusted, or "" if it can.
func (t Threshold) Disturbed(l Load) string {
	switch {
	case l.Steal > t.steal:
		return ReasonSteal
	case l.Throttled > t.throttled || l.Throttles > t.throttles:
		return ReasonThrottled
	case l.Waiting > t.waiting:
		return ReasonPressure
	case l.Queue > t.queue || l.Ready > t.ready:
		return ReasonRunQueue
	case l.Softirq > t.softirq+sampling(l):
		return ReasonSoftirq
	}
	return ""
}

// sampling is what the share of soft interrupts may be off by for having been sampled: three standard deviations of a share
// of so many looks, at a half, where they are largest. In a span of a few ticks nothing can be said.
func sampling(l Load) float64 {
	if l.Samples <= 0 {
		return 0
	}
	return 3 * 0.5 / math.Sqrt(l.Samples)
}

// Share calibrates and judges how much of a burst's time its own processes had the processor. Where both ends of a
// workload are pinned to one processor the share is close to 1, and what is missing was taken by others, or by one end while the other
// waited: how they take turns may be another way in another build. What lasts is therefore usual from then on.
type Share struct {
	row   []float64 // one after another for which nothing is usual: the first ones, and then those that are too small
	low   float64
	known bool // low
}

// calibrationBursts is how many bursts in a row set the usual share of a cell: the first ones, and so many that all have too little.
const calibrationBursts = 8

// Disturbed takes the share of one burst and says whether it is too small; the first bursts calibrate and are never so. least is the
// share of its time that a burst must miss at least; 0 is a tenth.
func (s *Share) Disturbed(share, least float64) bool {
	if s.known && share >= s.low {
		s.row = s.row[:0]
		return false
	}
	disturbed := s.known
	if s.row = append(s.row, share); len(s.row) == calibrationBursts {
		s.low, s.known = stats.Median(s.row)-max(cmp.Or(least, shareFloor), deviations*stats.MAD(s.row)), true
		s.row = s.row[:0]
	}
	return disturbed
}
