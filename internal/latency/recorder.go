// Package latency records the latencies of a measured loop and summarises them: exact quantiles of a burst from its raw
// samples, and an HDR histogram (1 ns to 60 s, three significant digits) of all bursts that were kept.
package latency

import (
	"math/bits"
	"unsafe"

	"netdelta/internal/clock"
	"netdelta/internal/native"
)

// The histogram's layout is HdrHistogram's for 1 ns to 60 s and three digits: values below 2048 have a counter each,
// and each doubling after that has 1024 counters.
const (
	lowest, highest  = 1, 60_000_000_000
	digits           = 3
	subBuckets       = 2048
	halfSubBuckets   = subBuckets / 2
	halfSubMagnitude = 10
	counters         = 27 * halfSubBuckets
)

// Samples is how many latencies of one burst are kept as they are; those beyond it go into a histogram, so that a burst of
// any length can be recorded without a pause.
const Samples = 1 << 16

// Recorder takes latencies from a measured loop. It lives in an arena.
type Recorder struct {
	clock    clock.Clock
	samples  *[Samples]int64
	overflow *[2][counters]int64 // of the even and the odd transactions
	count    int64
	sum      int64 // ticks
}

// Memory is how much of an arena a recorder takes.
const Memory = unsafe.Sizeof([Samples]int64{}) + unsafe.Sizeof([2][counters]int64{}) + 2*64

// Open takes the recorder's memory from the arena.
func (r *Recorder) Open(arena *native.Arena, c clock.Clock) {
	r.clock = c
	r.samples = (*[Samples]int64)(arena.Take(unsafe.Sizeof([Samples]int64{})))
	r.overflow = (*[2][counters]int64)(arena.Take(unsafe.Sizeof([2][counters]int64{})))
}

// Record takes one latency in ticks of the recorder's clock.
//
//go:nosplit
//go:norace
func (r *Recorder) Record(ticks int64) {
	n := r.count
	if n < Samples {
		r.samples[n&(Samples-1)] = ticks
	} else {
		// The mask only spares the bounds check, whose failure could not be reported from here.
		r.overflow[n&1][index(r.clock.Nanoseconds(ticks))%counters]++
	}
	r.count = n + 1
	r.sum += ticks
}

// Reset forgets all samples.
//
//go:nosplit
//go:norace
func (r *Recorder) Reset() {
	if r.count > Samples {
		for i := range r.overflow {
			for j := range r.overflow[i] {
				r.overflow[i][j] = 0
			}
		}
	}
	r.count, r.sum = 0, 0
}

// Recent is the latency that was recorded n before the next one, 1 being the last, in ticks; 0 for one that was kept in a histogram
// alone.
//
//go:nosplit
//go:norace
func (r *Recorder) Recent(n int64) int64 {
	at := r.count - n
	if at < 0 || at >= Samples {
		return 0
	}
	return r.samples[at&(Samples-1)]
}

// Count is how many latencies were recorded since Reset.
//
//go:nosplit
//go:norace
func (r *Recorder) Count() int64 { return r.count }

// index is the place of a value in nanoseconds among the counters.
//
//go:nosplit
//go:norace
func index(ns int64) uint64 {
	v := uint64(min(max(ns, lowest), highest))
	bucket := bits.Len64(v|(subBuckets-1)) - bits.Len64(subBuckets-1)
	return uint64(bucket)<<halfSubMagnitude + v>>bucket
}

// digit is how many bits a pass of the sort looks at: 2048 counters fit into a first-level cache.
const (
	digitBits = 11
	digitSize = 1 << digitBits
)

// sorter sorts latencies by radix, least significant digit first: a burst's few thousand values of some 20 bits take two
// or three passes, several times faster than comparing them.
type sorter struct {
	other  []int64
	counts [digitSize]int32
}

// sort sorts values, which must not be negative, in place.
func (s *sorter) sort(values []int64) {
	var all int64
	for _, v := range values {
		all |= v
	}
	if cap(s.other) < len(values) {
		s.other = make([]int64, len(values))
	}
	from, to := values, s.other[:len(values)]
	passes := 0
	for shift := 0; shift < bits.Len64(uint64(all)); shift += digitBits {
		s.pass(from, to, shift)
		from, to = to, from
		passes++
	}
	if passes%2 == 1 {
		copy(values, from)
	}
}

func (s *sorter) pass(from, to []int64, shift int) {
	clear(s.counts[:])
	for _, v := range from {
		s.counts[v>>shift&(digitSize-1)]++
	}
	place := int32(0)
	for i, n := range s.counts {
		s.counts[i] = place
		place += n
	}
	for _, v := range from {
		d := v >> shift & (digitSize - 1)
		to[s.counts[d]] = v
		s.counts[d]++
	}
}
