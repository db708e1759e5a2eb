package stats

import (
	"cmp"
	"slices"
)

// Spearman is the rank correlation of two series of equal length: Pearson's correlation of their ranks, where equal values
// share the mean of their ranks (Spearman, "The proof and measurement of association between two things", 1904). It is 1 where
// both order their members alike, -1 where one does it the other way round. With fewer than three pairs, or where all values
// of a series are equal, there is none and it is NaN.
func Spearman(x, y []float64) float64 {
	return pearson(Ranks(x), Ranks(y))
}

// Ranks are the places of values in ascending order, from 1; equal values share the mean of their ranks.
func Ranks(x []float64) []float64 {
	order := make([]int, len(x))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(x[i], x[j]) })
	ranks := make([]float64, len(x))
	for from := 0; from < len(order); {
		to := from + 1 // what is not a number equals not even itself
		for to < len(order) && x[order[to]] == x[order[from]] {
			to++
		}
		for _, i := range order[from:to] {
			ranks[i] = float64(from+1+to) / 2
		}
		from = to
	}
	return ranks
}
