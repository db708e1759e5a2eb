package stats

import (
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

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
