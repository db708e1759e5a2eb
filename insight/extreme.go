package insight

import (
	"math"
	"slices"

	"netdelta/result"
	"netdelta/stats"
)

// When bars are cut: with so many deltas or more, if the largest is so many times the third quartile; then at so many times it.
const (
	cutFrom  = 6
	cutAbove = 3.0
	cutAt    = 2.0
)

// Cut is how far from no change deltas of one metric are drawn, on the scale of Cost: a bar beyond it is cut, and marked as
// cut, so that one network that costs many times as much as the others leaves them room to differ. It is infinite where no bar
// needs to be.
func Cut(deltas []result.Delta) float64 {
	var sizes []float64
	for _, d := range deltas {
		if x := math.Abs(Cost(d)); !math.IsNaN(x) && !math.IsInf(x, 0) {
			sizes = append(sizes, x)
		}
	}
	if len(sizes) < cutFrom {
		return math.Inf(1)
	}
	usual := stats.Quantile(sizes, 0.75)
	if usual <= 0 || slices.Max(sizes) <= cutAbove*usual {
		return math.Inf(1)
	}
	return cutAt * usual
}
