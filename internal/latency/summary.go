// Package latency records the latencies of a measured loop and summarises them: exact quantiles of a burst from its raw
// samples, and an HDR histogram (1 ns to 60 s, three significant digits) of all bursts that were kept.
package latency

import (
	"fmt"
	"math"
	"math/bits"
	"unsafe"

	"github.com/HdrHistogram/hdrhistogram-go"

	"netdelta/internal/clock"
	"netdelta/internal/native"
)

// Summary describes the latencies of one burst, in nanoseconds.
type Summary struct {
	Count                         int64
	Min, P50, P90, P99, Mean, Max float64
	// Split is log(p50 of the odd transactions / p50 of the even ones); NaN-free: 0 with fewer than two of either.
	Split float64
}

// Batch holds the latencies of one burst until it is known whether they count.
type Batch struct {
	sorted     []int64 // nanoseconds
	even, odd  []int64
	sorter     sorter
	overflow   *hdrhistogram.Histogram // nil until it is needed
	overflowed bool
}

// Take moves the latencies out of the recorder and describes them. The recorder must not be in use by its loop.
func (b *Batch) Take(r *Recorder) Summary {
	kept := min(r.count, Samples)
	b.even, b.odd = b.even[:0], b.odd[:0]
	for i, ticks := range r.samples[:kept] {
		ns := r.clock.Nanoseconds(ticks)
		if i%2 == 0 {
			b.even = append(b.even, ns)
		} else {
			b.odd = append(b.odd, ns)
		}
	}
	b.sorter.sort(b.even)
	b.sorter.sort(b.odd)
	b.sorted = merged(b.sorted[:0], b.even, b.odd)
	s := Summary{Count: r.count}
	if r.count == 0 {
		b.overflowed = false
		return s
	}
	s.Mean = float64(r.clock.Nanoseconds(r.sum)) / float64(r.count)
	s.Min, s.Max = float64(b.sorted[0]), float64(b.sorted[len(b.sorted)-1])
	b.overflowed = r.count > Samples
	if b.overflowed {
		b.summariseOverflow(r, &s)
		return s
	}
	s.P50, s.P90, s.P99 = quantile(b.sorted, 0.5), quantile(b.sorted, 0.9), quantile(b.sorted, 0.99)
	if len(b.odd) >= 2 {
		s.Split = logRatio(quantile(b.odd, 0.5), quantile(b.even, 0.5))
	}
	return s
}

// summariseOverflow takes the quantiles of a long burst from histograms of the kept samples and of the others.
func (b *Batch) summariseOverflow(r *Recorder, s *Summary) {
	even, odd := newHistogram(), newHistogram()
	recordSorted(even, b.even)
	recordSorted(odd, b.odd)
	addCounters(even, &r.overflow[0])
	addCounters(odd, &r.overflow[1])
	s.Split = logRatio(float64(odd.ValueAtQuantile(50)), float64(even.ValueAtQuantile(50)))
	if b.overflow == nil {
		b.overflow = newHistogram()
	}
	b.overflow.Reset()
	addCounters(b.overflow, &r.overflow[0])
	addCounters(b.overflow, &r.overflow[1])
	even.Merge(odd)
	s.Min, s.Max = math.Min(s.Min, float64(even.Min())), math.Max(s.Max, float64(even.Max()))
	s.P50, s.P90, s.P99 = float64(even.ValueAtQuantile(50)), float64(even.ValueAtQuantile(90)), float64(even.ValueAtQuantile(99))
}

func logRatio(a, b float64) float64 {
	if a <= 0 || b <= 0 {
		return 0
	}
	return math.Log(a / b)
}

// merged appends the union of two sorted slices.
func merged(into, a, b []int64) []int64 {
	for len(a) > 0 && len(b) > 0 {
		if a[0] <= b[0] {
			into, a = append(into, a[0]), a[1:]
		} else {
			into, b = append(into, b[0]), b[1:]
		}
	}
	return append(append(into, a...), b...)
}

// quantile interpolates linearly between the order statistics next to rank q (n-1), as R's type 7 does.
func quantile(sorted []int64, q float64) float64 {
	rank := q * float64(len(sorted)-1)
	low := int(rank)
	if low+1 >= len(sorted) {
		return float64(sorted[len(sorted)-1])
	}
	part := rank - float64(low)
	return float64(sorted[low])*(1-part) + float64(sorted[low+1])*part
}

// Histogram gathers the latencies of the bursts that were kept.
type Histogram struct{ hdr *hdrhistogram.Histogram }

func newHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(lowest, highest, digits) }

// NewHistogram returns an empty histogram.
func NewHistogram() *Histogram { return &Histogram{hdr: newHistogram()} }

// Add takes all latencies of a batch.
func (h *Histogram) Add(b *Batch) {
	recordSorted(h.hdr, b.sorted)
	if b.overflowed {
		h.hdr.Merge(b.overflow)
	}
}

// Record adds count latencies of ns nanoseconds: those that another program has measured.
func (h *Histogram) Record(ns, count int64) {
	if count > 0 {
		record(h.hdr, ns, count)
	}
}

// Count is how many latencies the histogram holds.
func (h *Histogram) Count() int64 { return h.hdr.TotalCount() }

// Reset empties the histogram.
func (h *Histogram) Reset() { h.hdr.Reset() }

// Encode returns the histogram in HdrHistogram's V2 compressed encoding, base64; "" when it is empty.
func (h *Histogram) Encode() (string, error) {
	if h.hdr.TotalCount() == 0 {
		return "", nil
	}
	encoded, err := h.hdr.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		return "", fmt.Errorf("encode a histogram of %d latencies: %w", h.hdr.TotalCount(), err)
	}
	return string(encoded), nil
}

// recordSorted records values that share a counter together.
func recordSorted(h *hdrhistogram.Histogram, sorted []int64) {
	for len(sorted) > 0 {
		first := sorted[0]
		next := value(int(index(first)) + 1)
		n := 1
		for n < len(sorted) && sorted[n] < next {
			n++
		}
		record(h, first, int64(n))
		sorted = sorted[n:]
	}
}

func addCounters(h *hdrhistogram.Histogram, counts *[counters]int64) {
	for i, n := range counts {
		if n > 0 {
			record(h, value(i), n)
		}
	}
}

// record adds n latencies of ns, clamped to the histogram's range: none is left out.
func record(h *hdrhistogram.Histogram, ns, n int64) {
	if err := h.RecordValues(min(max(ns, lowest), highest), n); err != nil {
		panic(err) // the value is in range
	}
}

// value is the lowest value that is counted at a place: the inverse of index.
func value(place int) int64 {
	bucket := max(place>>halfSubMagnitude-1, 0)
	return int64(place-bucket<<halfSubMagnitude) << bucket
}

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
