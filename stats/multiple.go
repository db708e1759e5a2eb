package stats

import (
	"cmp"
	"math"
	"slices"
)

// Holm corrects the p values of a family so that the chance of even one false claim in it stays below the level
// each is then held against (Holm 1979): valid however the tests depend on one another, and never weaker than
// Bonferroni. The result is in the order of p. A p that is not in [0,1] corrects to NaN and counts in the family.
func Holm(p []float64) []float64 {
	order, out := ranked(p)
	highest := 0.0
	for rank, i := range order {
		highest = max(highest, min(1, p[i]*float64(len(p)-rank)))
		out[i] = highest
	}
	return out
}

// ranked gives the positions of the valid p values in ascending order of p, and a result that is NaN everywhere.
func ranked(p []float64) (order []int, out []float64) {
	out = make([]float64, len(p))
	for i, v := range p {
		out[i] = math.NaN()
		if v >= 0 && v <= 1 {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p[a], p[b]) })
	return order, out
}
