package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestCorrelate(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		name                 string
		x, y                 []float64
		pearson, spearman, p float64
		interval             bool
	}{
		{"a line", []float64{1, 2, 3, 4, 5}, []float64{2, 4, 6, 8, 10}, 1, 1, 2.0 / 120, true},
		{"a line downwards", []float64{1, 2, 3, 4}, []float64{8, 6, 4, 2}, -1, -1, 2.0 / 24, true},
		{"three", []float64{1, 2, 3}, []float64{1, 3, 2}, 0.5, 0.5, 1, false}, // all six orders go together by half at least
		{"nothing", []float64{1, 2, 3, 4}, []float64{1, 2, 2, 1}, 0, 0, 1, true},
		{"too few", []float64{1, 2}, []float64{1, 2}, nan, nan, nan, false},
		{"all the same", []float64{1, 1, 1, 1}, []float64{1, 2, 3, 4}, nan, nan, nan, false},
		{"of unequal length", []float64{1, 2, 3}, []float64{1, 2, 3, 4}, nan, nan, nan, false},
		{"not a number", []float64{1, 2, nan, 4}, []float64{1, 2, 3, 4}, nan, nan, nan, false},
	} {
		got := Correlate(c.x, c.y, 0.95, 1)
		for _, v := range []struct {
			name      string
			got, want float64
		}{{"Pearson", got.Pearson, c.pearson}, {"Spearman", got.Spearman, c.spearman}, {"P", got.P, c.p}} {
			if c.name == "not a number" && v.name == "Spearman" {
				continue // ranks are of any order
			}
			if math.IsNaN(v.got) != math.IsNaN(v.want) || math.Abs(v.got-v.want) > 1e-9 {
				t.Errorf("%s: %s is %v, want %v", c.name, v.name, v.got, v.want)
			}
		}
		if has := !math.IsNaN(got.Low) && !math.IsNaN(got.High); has != c.interval || has && (got.Low > got.Pearson || got.High < got.Pearson) {
			t.Errorf("%s: the interval is [%v, %v] about %v", c.name, got.Low, got.High, got.Pearson)
		}
	}
}

// pairs draws n objects whose two figures correlate by rho: the first from draw, which has the mean 0 and the variance 1, both
// with the noise of a measurement.
func pairs(rng *rand.Rand, n int, rho, noise float64, draw func() float64) (x, y []float64) {
	for range n {
		a := draw()
		b := rho*a + math.Sqrt(1-rho*rho)*draw()
		x, y = append(x, a+noise*rng.NormFloat64()), append(y, b+noise*rng.NormFloat64())
	}
	return x, y
}

// TestCorrelationHoldsTheTruth: 95% intervals hold the true correlation in 92% to 98% of runs, with as few networks as runs
// have, whatever it is; for figures without tails they may be wider than they need; also where each figure is known to a tenth of what networks differ by.
func TestCorrelationHoldsTheTruth(t *testing.T) {
	const trials = 3000
	for _, world := range []struct {
		name  string
		noise float64
		draw  func(rng *rand.Rand) float64
	}{
		{"normal", 0, (*rand.Rand).NormFloat64},
		{"normal, with noise", 0.1, (*rand.Rand).NormFloat64},
		{"uniform", 0, func(rng *rand.Rand) float64 { return (rng.Float64() - 0.5) * math.Sqrt(12) }},
	} {
		for _, rho := range []float64{0, -0.5, 0.9} {
			for _, n := range []int{4, 5, 8, 12} {
				held := 0
				rng := rand.New(rand.NewPCG(7, uint64(n)))
				for range trials {
					x, y := pairs(rng, n, rho, world.noise, func() float64 { return world.draw(rng) })
					low, high := interval(x, y)
					if low <= rho && rho <= high {
						held++
					}
				}
				share := float64(held) / trials
				t.Logf("%s, correlation %.2f, %d objects: %.1f%%", world.name, rho, n, 100*share)
				if share < 0.92 || share > 0.98 && world.name != "uniform" {
					t.Errorf("%s, correlation %.2f, %d objects: %.1f%% of the 95%% intervals hold it", world.name, rho, n, 100*share)
				}
			}
		}
	}
}

// interval is Correlate's interval, without the test by permutations, which takes its time.
func interval(x, y []float64) (low, high float64) {
	return fisher(pearson(x, y), len(x), 0.95)
}

// Where nothing goes together, chance is called rare as often as it is.
func TestChanceIsCalledByItsName(t *testing.T) {
	const trials = 600
	for _, n := range []int{5, 7} {
		rng := rand.New(rand.NewPCG(3, uint64(n)))
		rare := 0
		for i := range trials {
			x, y := pairs(rng, n, 0, 0, rng.NormFloat64)
			if Correlate(x, y, 0.95, uint64(i)).P <= 0.05 {
				rare++
			}
		}
		if share := float64(rare) / trials; share > 0.075 {
			t.Errorf("%d objects: P is at most 0.05 in %.1f%% of draws of what does not correlate", n, 100*share)
		}
	}
}

// Above the number to which orders are tried one by one, draws give about the same.
func TestChanceByDraws(t *testing.T) {
	x, y := pairs(rand.New(rand.NewPCG(1, 2)), exactMost, 0.7, 0, rand.New(rand.NewPCG(5, 6)).NormFloat64)
	exact := Correlate(x, y, 0.95, 1).P
	c := Correlation{Spearman: Spearman(x, y)}
	if drawn := c.draws(Ranks(x), Ranks(y), 9); math.Abs(drawn-exact) > 0.01 {
		t.Errorf("by draws %.4f, exactly %.4f", drawn, exact)
	}
}
