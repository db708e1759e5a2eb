package stats

import (
	"math"
	"slices"

	"netdelta/stats/order"
)

// Mean is the arithmetic mean, NaN of nothing.
func Mean(x []float64) float64 {
	if len(x) == 0 {
		return math.NaN()
	}
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}

// sampleVariance is the sample variance (divisor n-1), NaN of fewer than two values.
func sampleVariance(x []float64) float64 {
	if len(x) < 2 {
		return math.NaN()
	}
	mean, sum := Mean(x), 0.0
	for _, v := range x {
		sum += (v - mean) * (v - mean)
	}
	return sum / float64(len(x)-1)
}

// Quantile is order.Quantile.
func Quantile(x []float64, q float64) float64 { return order.Quantile(x, q) }

// Median is the 0.5-quantile.
func Median(x []float64) float64 { return order.Median(x) }

// MAD is the median absolute deviation from the median, scaled by 1.4826 so that it estimates the standard
// deviation of normal data. It ignores up to half of the values being wild. It is NaN of nothing.
func MAD(x []float64) float64 {
	center := Median(x)
	away := make([]float64, len(x))
	for i, v := range x {
		away[i] = math.Abs(v - center)
	}
	return 1.4826 * Median(away)
}

// TrimmedMean is the mean after the share trim, 0 <= trim < 0.5, was cut from each end. It is NaN of nothing and of
// values that hold a NaN.
func TrimmedMean(x []float64, trim float64) float64 {
	if len(x) == 0 || !(trim >= 0 && trim < 0.5) || slices.ContainsFunc(x, math.IsNaN) {
		return math.NaN()
	}
	return trimmedMean(slices.Clone(x), trim)
}

// trimmedMean is TrimmedMean of values without a NaN, which it sorts.
func trimmedMean(x []float64, trim float64) float64 {
	slices.Sort(x)
	cut := int(trim * float64(len(x)))
	return Mean(x[cut : len(x)-cut])
}

// HodgesLehmann is the median of the means of all pairs of values, each with itself included: nearly as precise as
// the mean of normal data, and unmoved by up to 29% wild values. It takes n*(n+1)/2 steps. It is NaN of nothing.
func HodgesLehmann(x []float64) float64 {
	pairs := make([]float64, 0, len(x)*(len(x)+1)/2)
	for i, a := range x {
		for _, b := range x[i:] {
			pairs = append(pairs, (a+b)/2)
		}
	}
	return Median(pairs)
}
