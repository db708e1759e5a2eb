package insight

import (
	"math"
	"math/rand/v2"
	"testing"

	"netdelta/result"
)

// TestCarryOver: what a network leaves behind is reported if it is more than a thousandth and more than chance, and next to never else.
func TestCarryOver(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	// run has 30 builds with 160 visits each, which scatter by 3%.
	run := func(left float64) []Check {
		var all []batch
		for range 30 {
			var c result.CarryOver
			for range 160 {
				off := left + 0.03*rng.NormFloat64()
				c.Visits, c.Sum, c.Squares = c.Visits+1, c.Sum+off, c.Squares+off*off
			}
			all = append(all, batch{"vxlan": {carry: &c}})
		}
		return carryChecks(all)
	}
	for _, c := range []struct {
		left     float64
		from, to int // of 200 runs
	}{{0, 0, 2}, {0.0005, 0, 5}, {0.004, 198, 200}} {
		found := 0
		for range 200 {
			for _, check := range run(c.left) {
				found++
				if math.Abs(check.Share-c.left) > 5*check.Error {
					t.Errorf("%v left behind is found as %v +- %v", c.left, check.Share, check.Error)
				}
			}
		}
		if found < c.from || found > c.to {
			t.Errorf("%v left behind is reported in %d of 200 runs, want %d to %d", c.left, found, c.from, c.to)
		}
	}
}
