package page_test

import (
	"math"
	"slices"
	"testing"

	"netdelta/report/page"
)

func TestTicks(t *testing.T) {
	for _, test := range []struct {
		high float64
		most int
		want []float64
	}{
		{144, 5, []float64{0, 50, 100}}, {100, 5, []float64{0, 20, 40, 60, 80, 100}}, {0.9, 5, []float64{0, 0.2, 0.4, 0.6000000000000001, 0.8}},
		{1, 1, []float64{0, 1}}, {0, 5, nil}, {-1, 5, nil}, {math.NaN(), 5, nil}, {math.Inf(1), 5, nil}, {7, 0, nil},
	} {
		if got := page.Ticks(test.high, test.most); !slices.Equal(got, test.want) {
			t.Errorf("ticks up to %v: %v, want %v", test.high, got, test.want)
		}
	}
}
