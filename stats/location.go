package stats

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

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
	order.Sort(x)
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

// MeanInterval is the mean of independent observations with Student's interval of the given confidence (0.95). Without at
// least two observations the bounds are NaN.
func MeanInterval(x []float64, confidence float64) (mean, low, high float64) {
	mean = Mean(x)
	n := float64(len(x))
	if n < 2 {
		return mean, math.NaN(), math.NaN()
	}
	half := tQuantile(1-(1-confidence)/2, n-1) * math.Sqrt(sampleVariance(x)/n)
	return mean, mean - half, mean + half
}

// MedianInterval is an interval of the median of what x was drawn from, whatever its distribution: between two order statistics. The
// values must be finite. ok is false where there are too few of them: 6 for 95%.
func MedianInterval(x []float64, confidence float64) (low, high float64, ok bool) {
	n := len(x)
	// The rank of the median among n values is binomial: the interval leaves out as many at either end as it may.
	b := distuv.Binomial{N: float64(n), P: 0.5}
	cut := -1
	for k := 0; 2*k < n && b.CDF(float64(k)) <= (1-confidence)/2; k++ {
		cut = k
	}
	if cut < 0 {
		return 0, 0, false
	}
	sorted := slices.Sorted(slices.Values(x))
	return sorted[cut], sorted[n-1-cut], true
}
