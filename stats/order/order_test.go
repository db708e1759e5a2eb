package order

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// Values of all kinds are sorted, whatever their number.
func TestSort(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for n := range 300 {
		x := make([]float64, n)
		for i := range x {
			switch x[i] = random.NormFloat64(); random.IntN(5) {
			case 0:
				x[i] = float64(random.IntN(3) - 1)
			case 1:
				x[i] = math.Inf(random.IntN(2) - 1)
			case 2:
				x[i] *= math.Pow(10, float64(random.IntN(600)-300))
			}
		}
		want := slices.Sorted(slices.Values(x))
		if Sort(x); !slices.Equal(x, want) {
			t.Fatalf("%d values: %v, want %v", n, x, want)
		}
	}
}

// BenchmarkSort is what the location of a build of 40 rounds takes.
func BenchmarkSort(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 2))
	builds := make([][80]float64, 1000)
	for i := range builds {
		for k := range builds[i] {
			builds[i][k] = random.NormFloat64()
		}
	}
	for i := 0; b.Loop(); i++ {
		x := builds[i%len(builds)]
		Sort(x[:])
	}
}
