package stats

import (
	"math"
	"slices"
	"testing"
)

func TestSpearman(t *testing.T) {
	for _, c := range []struct {
		name string
		x, y []float64
		want float64
	}{
		{"the same order", []float64{1, 2, 3, 4}, []float64{10, 20, 300, 4000}, 1},
		{"the other way round", []float64{1, 2, 3, 4}, []float64{4, 3, 2, -1}, -1},
		{"two neighbours change places", []float64{1, 2, 3, 4, 5}, []float64{1, 3, 2, 4, 5}, 0.9}, // 1 - 6*2/(5*24)
		{"two are equal", []float64{1, 2, 2, 3}, []float64{1, 2, 3, 4}, 4.5 / math.Sqrt(4.5*5)},
		{"too few", []float64{1, 2}, []float64{1, 2}, math.NaN()},
		{"all are equal", []float64{1, 1, 1}, []float64{1, 2, 3}, math.NaN()},
		{"of unequal length", []float64{1, 2, 3}, []float64{1, 2, 3, 4}, math.NaN()},
	} {
		got := Spearman(c.x, c.y)
		if math.IsNaN(got) != math.IsNaN(c.want) || math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestRanks(t *testing.T) {
	if got, want := Ranks([]float64{30, 10, 20, 10}), []float64{4, 1.5, 3, 1.5}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
