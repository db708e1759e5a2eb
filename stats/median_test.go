package stats

import (
	"math/rand/v2"
	"testing"
)

func TestMedianInterval(t *testing.T) {
	if _, _, ok := MedianInterval([]float64{1, 2, 3, 4, 5}, 0.95); ok {
		t.Error("five values have an interval")
	}
	// The ranks are from tables of the sign test: 1 and 6 of 6, 2 and 9 of 10, 6 and 15 of 20.
	for _, c := range []struct{ n, low, high int }{{6, 1, 6}, {10, 2, 9}, {20, 6, 15}} {
		var x []float64
		for _, i := range rand.New(rand.NewPCG(1, uint64(c.n))).Perm(c.n) {
			x = append(x, float64(i+1))
		}
		low, high, ok := MedianInterval(x, 0.95)
		if !ok || low != float64(c.low) || high != float64(c.high) {
			t.Errorf("of %d values the interval is from %v to %v (%t), want %d to %d", c.n, low, high, ok, c.low, c.high)
		}
	}
}
