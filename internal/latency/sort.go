package latency

import "math/bits"

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
