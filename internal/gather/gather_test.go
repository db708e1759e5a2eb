package gather_test

import (
	"slices"
	"strconv"
	"testing"

	"netdelta/internal/gather"
)

func TestGather(t *testing.T) {
	if got := gather.Each([]int{3, 1, 2}, strconv.Itoa); !slices.Equal(got, []string{"3", "1", "2"}) {
		t.Errorf("each: %q", got)
	}
	odd := func(n int) bool { return n%2 != 0 }
	if got := gather.Where([]int{3, 1, 2}, odd); !slices.Equal(got, []int{3, 1}) {
		t.Errorf("where: %v", got)
	}
	if got := gather.Once(gather.Once([]int{3}, 1), 3); !slices.Equal(got, []int{3, 1}) {
		t.Errorf("once: %v", got)
	}
	if got, found := gather.First([]int{2, 3, 1}, odd); got != 3 || !found {
		t.Errorf("first: %d, %t", got, found)
	}
	if got, found := gather.First([]int{2}, odd); got != 0 || found {
		t.Errorf("the first of none: %d, %t", got, found)
	}
	if gather.Each(nil, strconv.Itoa) != nil || gather.Where([]int{2}, odd) != nil {
		t.Error("of nothing comes something")
	}
}

func TestRemembered(t *testing.T) {
	calls := 0
	product := gather.Remembered(func(a int, b float64) float64 { calls++; return float64(a) * b })
	for range 2 {
		if got := product(2, 3) + product(3, 2) + product(2, 4); got != 20 {
			t.Errorf("got %g", got)
		}
	}
	if calls != 3 {
		t.Errorf("%d calls for three pairs of arguments", calls)
	}
}
