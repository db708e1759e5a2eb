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
	sorted := slices.Clone(x)
	slices.Sort(sorted)
	return sortedQuantile(sorted, q)
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
