// Package order has the order statistics that agents need too: unlike package stats it depends on nothing.
package order

import (
	"math"
	"slices"
)

// Quantile is the q-quantile, 0 <= q <= 1, by linear interpolation between order statistics (type 7 of Hyndman and
// Fan, "Sample quantiles in statistical packages", 1996). x need not be sorted and is left alone. It is NaN of
// nothing, of a q outside the range, and of values that hold a NaN.
func Quantile(x []float64, q float64) float64 {
	if len(x) == 0 || !(q >= 0 && q <= 1) || slices.ContainsFunc(x, math.IsNaN) {
		return math.NaN()
	}
	var few [64]float64 // most are: they take no memory then
	sorted := append(few[:0], x...)
	Sort(sorted)
	return sortedQuantile(sorted, q)
}

// Sort sorts values of which none is NaN: as their bits, which compare in half the time.
func Sort(x []float64) {
	var few [128]int64
	keys := few[:0]
	if len(x) > len(few) {
		keys = make([]int64, 0, len(x))
	}
	for _, v := range x {
		bits := int64(math.Float64bits(v))
		keys = append(keys, bits^int64(uint64(bits>>63)>>1)) // below zero, the larger the size the less
	}
	slices.Sort(keys)
	for i, k := range keys {
		x[i] = math.Float64frombits(uint64(k ^ int64(uint64(k>>63)>>1)))
	}
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
