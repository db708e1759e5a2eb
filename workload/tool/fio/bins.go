package fio

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/bits"
	"slices"
	"strconv"

	"netdelta/internal/latency"
)

// Bin is how many latencies lie from Low to below High.
type Bin struct{ Low, High, Count int64 }

// Bins are all latencies, ascending.
type Bins []Bin

// mostCount is how many latencies of a bin are believed: sums of them can't overflow.
const mostCount = 1 << 40

// UnmarshalJSON reads counts by the middle of their bins.
func (b *Bins) UnmarshalJSON(text []byte) error {
	var counts map[string]int64
	if err := json.Unmarshal(text, &counts); err != nil {
		return err
	}
	for name, count := range counts {
		middle, err := strconv.ParseInt(name, 10, 64)
		if err != nil || middle < 0 || middle > highest || count < 0 || count > mostCount {
			return fmt.Errorf("%d latencies of %q ns", count, name)
		}
		if count > 0 {
			low, high := bounds(middle)
			*b = append(*b, Bin{Low: low, High: high, Count: count})
		}
	}
	b.sort()
	return nil
}

func (b Bins) sort() {
	slices.SortFunc(b, func(a, b Bin) int { return cmp.Or(cmp.Compare(a.Low, b.Low), cmp.Compare(a.Count, b.Count)) })
}

// fio counts latencies in bins: one for each nanosecond below 128, and above that 64 for each power of two. A report names a
// bin by its middle.
const (
	binBits = 6
	exact   = 2 << binBits
	highest = 1 << 40 // ns; fio's last bin ends below
)

// bounds are the bounds of the bin that holds a value, the upper one exclusive.
func bounds(value int64) (low, high int64) {
	if value < exact {
		return value, value + 1
	}
	width := int64(1) << (bits.Len64(uint64(value)) - 1 - binBits)
	low = value &^ (width - 1)
	return low, low + width
}

// Quantile is the latency below which the share q of the operations lies (0 to 1), taken to lie evenly within their bins; 0
// without bins.
func (l Latency) Quantile(q float64) float64 {
	total := int64(0)
	for _, b := range l.Bins {
		total += b.Count
	}
	rank := min(max(q, 0), 1) * float64(total)
	for i, b := range l.Bins {
		if count := float64(b.Count); rank <= count || i == len(l.Bins)-1 {
			at := float64(b.Low) + float64(b.High-b.Low)*min(rank/count, 1)
			// The extremes are known exactly, and lie inside their bins.
			if l.Max > 0 && l.Min <= l.Max {
				at = min(max(at, l.Min), l.Max)
			}
			return at
		}
		rank -= float64(b.Count)
	}
	return 0
}

// parts is into how many parts a bin is divided in a histogram that is finer than fio's.
const parts = 16

// Record puts the latencies into a histogram; a bin's are spread evenly over it.
func (l Latency) Record(h *latency.Histogram) {
	for _, b := range l.Bins {
		n := min(b.Count, parts, b.High-b.Low)
		for i := range n {
			// The i-th of n parts, of the bin's width and of its latencies.
			h.Record(b.Low+(b.High-b.Low)*(2*i+1)/(2*n), b.Count*(i+1)/n-b.Count*i/n)
		}
	}
}
