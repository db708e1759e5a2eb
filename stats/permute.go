package stats

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
)

// exactSigns is the largest number of values for which SignFlip counts every assignment of signs. Beyond it, and it
// costs two lists of 2^16 sums there, signs are drawn.
const exactSigns = 32

// signDraws is how many random assignments stand in for all of them beyond exactSigns.
const signDraws = 100_000

// tieSlack widens "at least as far out" by rounding error, relative to the sum of the magnitudes. Without it the
// observed assignment may miss itself, and p comes out as 0.
const tieSlack = 1e-12

// SignFlip is the two-sided p of the hypothesis that the values lie symmetrically about zero: the share of all 2^n
// assignments of signs whose sum is at least as far from zero as the observed one. It is exact up to 32 values, and
// beyond that from 100,000 assignments drawn from seed, with the observed one counted in so that p is never 0
// (Phipson and Smyth 2010). Its smallest value is 2/2^n: see NeedFor.
//
// Pass one value for each build. Values that are not finite are left out; of none, p is 1.
func SignFlip(buildMeans []float64, seed uint64) float64 {
	values := finite(buildMeans)
	total, observed := 0.0, 0.0
	for _, v := range values {
		total += math.Abs(v)
		observed += v
	}
	if total == 0 || math.IsInf(total, 0) {
		return 1
	}
	threshold := math.Abs(observed) - tieSlack*total
	if len(values) <= exactSigns {
		return exactTail(values, threshold)
	}
	return drawnTail(values, threshold, seed)
}

// exactTail is the share of sign assignments whose sum is at least threshold away from zero. The assignments of the
// two halves are listed in order, and met in the middle: 2^(n/2) steps where a plain count takes 2^n.
func exactTail(values []float64, threshold float64) float64 {
	if threshold <= 0 {
		return 1
	}
	half := len(values) / 2
	left, right := signedSums(values[:half]), signedSums(values[half:])
	// As the left sum grows, ever smaller right sums suffice. The far tail mirrors the near one.
	count, from := 0, len(right)
	for _, s := range left {
		for from > 0 && s+right[from-1] >= threshold {
			from--
		}
		count += len(right) - from
	}
	return min(1, 2*float64(count)/(float64(len(left))*float64(len(right))))
}

// signedSums lists the sums of the values under all assignments of signs, in ascending order.
func signedSums(values []float64) []float64 {
	sums := []float64{0}
	for _, v := range values {
		v = math.Abs(v)
		next := make([]float64, 0, 2*len(sums))
		down, up := 0, 0
		for down < len(sums) {
			if sums[down]-v <= sums[up]+v {
				next = append(next, sums[down]-v)
				down++
			} else {
				next = append(next, sums[up]+v)
				up++
			}
		}
		for ; up < len(sums); up++ {
			next = append(next, sums[up]+v)
		}
		sums = next
	}
	return sums
}

// drawnTail estimates exactTail from random assignments.
func drawnTail(values []float64, threshold float64, seed uint64) float64 {
	random := rand.New(rand.NewPCG(seed, 0))
	hits := 1
	for range signDraws {
		sum, word := 0.0, uint64(0)
		for i, v := range values {
			if i%64 == 0 {
				word = random.Uint64()
			}
			if word&1 == 0 {
				v = -v
			}
			sum, word = sum+v, bits.RotateLeft64(word, -1)
		}
		if math.Abs(sum) >= threshold {
			hits++
		}
	}
	return float64(hits) / float64(signDraws+1)
}

// NeedFor is the number of builds from which SignFlip can reach significance after Holm's correction over a family
// of deltas: the least n with family * 2/2^n <= 1-confidence. It is 6 for one delta at 95%, 10 for fourteen, 12 for
// a hundred. A family below 1 counts as 1; a confidence outside (0,1) as 0.95.
func NeedFor(family int, confidence float64) int {
	if !(confidence > 0 && confidence < 1) {
		confidence = DefaultConfidence
	}
	alpha := (1 - confidence) * (1 + 1e-9) // 1-0.95 is a hair off 0.05
	return max(1, int(math.Ceil(1+math.Log2(float64(max(family, 1))/alpha))))
}

// finite copies the values that are neither NaN nor infinite.
func finite(x []float64) []float64 {
	return slices.DeleteFunc(slices.Clone(x), func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) })
}
