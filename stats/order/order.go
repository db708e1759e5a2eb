// Package order has the order statistics that agents need too: unlike package stats it depends on nothing.
package order

import (
	"math"
	"math/bits"
	"slices"
)

// Quantile is the q-quantile, 0 <= q <= 1, by linear interpolation between order statistics (type 7 of Hyndman and
// Fan, "Sample quantiles in statistical packages", 1996). x need not be sorted and is left alone. It is NaN of
// nothing, of a q outside the range, and of values that hold a NaN.
func Quantile(x []float64, q float64) float64 {
	if len(x) == 0 || !(q >= 0 && q <= 1) || slices.ContainsFunc(x, math.IsNaN) {
		return math.NaN()
	}
	var few [96]float64 // most are: they take no memory then
	sorted := append(few[:0], x...)
	Sort(sorted)
	return sortedQuantile(sorted, q)
}

// Sort sorts values of which none is NaN: as their bits, by merging, without the branches of which a processor guesses every other one
// wrong. With slices.Sort, which takes three times as long for the bursts of a build, judging a run takes a third more.
func Sort(x []float64) {
	n := len(x)
	var few [256]uint64
	room := few[:]
	if 2*n > len(few) {
		room = make([]uint64, 2*n)
	}
	keys, other := room[:n], room[n:2*n]
	for i, v := range x {
		k := math.Float64bits(v)
		keys[i] = k ^ (-(k >> 63) | sign) // below zero, the larger the size the less
	}
	alone := n
	for alone > insertable {
		alone = (alone + 1) / 2 // runs of one length, but for the last, are merged sooner
	}
	for at := 0; at < n; at += alone {
		insert(keys[at:min(at+alone, n)])
	}
	for width := alone; width < n; width *= 2 {
		for at := 0; at < n; at += 2 * width {
			middle, end := min(at+width, n), min(at+2*width, n)
			merge(other[at:end], keys[at:middle], keys[middle:end])
		}
		keys, other = other, keys
	}
	for i, k := range keys {
		x[i] = math.Float64frombits(k ^ (((k >> 63) - 1) | sign))
	}
}

const (
	sign       = 1 << 63
	insertable = 6 // so many are sorted without merging
)

// insert sorts a few keys.
func insert(keys []uint64) {
	for i := 1; i < len(keys); i++ {
		for j := i; j > 0 && keys[j] < keys[j-1]; j-- {
			keys[j], keys[j-1] = keys[j-1], keys[j]
		}
	}
}

// merge merges what is sorted: two of one length from both ends at once, which do not wait for one another.
func merge(to, a, b []uint64) {
	i, j := 0, 0
	if n := len(a); n == len(b) {
		k, l := n-1, n-1
		for at := range n {
			x, y := a[i], b[j]
			_, less := bits.Sub64(y, x, 0) // 1 if y is less
			to[at] = x ^ (x^y)&-less
			i, j = i+1-int(less), j+int(less)
			x, y = a[k], b[l]
			_, less = bits.Sub64(y, x, 0)
			to[2*n-1-at] = y ^ (x^y)&-less
			k, l = k-int(less), l-1+int(less)
		}
		return
	}
	for i < len(a) && j < len(b) {
		x, y := a[i], b[j]
		_, less := bits.Sub64(y, x, 0)
		to[i+j] = x ^ (x^y)&-less
		i, j = i+1-int(less), j+int(less)
	}
	copy(to[i+j:], a[i:])
	copy(to[len(a)+j:], b[j:])
}

func sortedQuantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	low := int(at)
	if low+1 >= len(sorted) || at == float64(low) {
		return sorted[low]
	}
	part := at - float64(low)
	return sorted[low]*(1-part) + sorted[low+1]*part
}

// Median is the 0.5-quantile.
func Median(x []float64) float64 { return Quantile(x, 0.5) }
