package pressure

import (
	"cmp"
	"math"

	"netdelta/internal/gather"
	"netdelta/stats"
)

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

// Calibrate sets the threshold from spans measured at the start of a run. A machine that is busy from the start has a high
// threshold: its noise is then in every interval, where it belongs.
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
// workload are pinned to one processor the share is close to 1, and what is missing was taken by others.
type Share struct {
	quiet []float64
	low   float64
}

// calibrationBursts is how many bursts set the usual share of a cell.
const calibrationBursts = 8

// Disturbed takes the share of one burst and says whether it is too small; the first bursts calibrate and are never so. least is the
// share of its time that a burst must miss at least; 0 is a tenth.
func (s *Share) Disturbed(share, least float64) bool {
	if len(s.quiet) < calibrationBursts {
		s.quiet = append(s.quiet, share)
		if len(s.quiet) == calibrationBursts {
			s.low = stats.Median(s.quiet) - max(cmp.Or(least, shareFloor), deviations*stats.MAD(s.quiet))
		}
		return false
	}
	return share < s.low
}
