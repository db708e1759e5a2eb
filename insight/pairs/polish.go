package pairs

import (
	"math"

	"netdelta/stats"
)

// Fit is a matrix taken apart into what its rows and its columns add: value = Overall + Rows[i] + Columns[j] + Residuals[i][j].
type Fit struct {
	Overall       float64
	Rows, Columns []float64
	Residuals     [][]float64
}

// polishMost and polishEnough end the polishing: it converges fast, and not always to a point.
const (
	polishMost   = 100
	polishEnough = 1e-9
)

// Polish fits a square matrix by Tukey's median polish, so that a few odd entries stay in the residuals and don't move the rest.
// Entries that are NaN, as on the diagonal, are not there. Rows and columns each have a median of 0; one without any entry is NaN.
func Polish(m [][]float64) Fit {
	n := len(m)
	f := Fit{Rows: make([]float64, n), Columns: make([]float64, n), Residuals: make([][]float64, n)}
	for i, row := range m {
		f.Residuals[i] = append([]float64(nil), row...)
	}
	for range polishMost {
		moved := 0.0
		for i := range n {
			by := medianOf(n, func(j int) float64 { return f.Residuals[i][j] })
			f.Rows[i] += by
			for j := range n {
				f.Residuals[i][j] -= by
			}
			moved = max(moved, math.Abs(by))
		}
		for j := range n {
			by := medianOf(n, func(i int) float64 { return f.Residuals[i][j] })
			f.Columns[j] += by
			for i := range n {
				f.Residuals[i][j] -= by
			}
			moved = max(moved, math.Abs(by))
		}
		if moved < polishEnough {
			break
		}
	}
	for _, side := range [][]float64{f.Rows, f.Columns} {
		by := medianOf(n, func(i int) float64 { return side[i] })
		f.Overall += by
		for i := range side {
			side[i] -= by
		}
	}
	for i := range n {
		if empty(n, func(j int) float64 { return m[i][j] }) {
			f.Rows[i] = math.NaN()
		}
		if empty(n, func(j int) float64 { return m[j][i] }) {
			f.Columns[i] = math.NaN()
		}
	}
	return f
}

// medianOf is the median of n values without those that are NaN; 0 if all are.
func medianOf(n int, value func(int) float64) float64 {
	all := make([]float64, 0, n)
	for i := range n {
		if v := value(i); !math.IsNaN(v) {
			all = append(all, v)
		}
	}
	if len(all) == 0 {
		return 0
	}
	return stats.Median(all)
}

// empty says whether none of n values is a number.
func empty(n int, value func(int) float64) bool {
	for i := range n {
		if !math.IsNaN(value(i)) {
			return false
		}
	}
	return true
}
