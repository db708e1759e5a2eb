package lab_test

import (
	"slices"
	"testing"
	"time"
)

// ratioOfTurns has two things done in turns and is how many times longer the second takes: the median over pairs of turns,
// which stand so close to each other that what else the machine does meets both.
func ratioOfTurns(t *testing.T, do func(which int) error) float64 {
	t.Helper()
	const warm, turns = 3, 41
	var ratios []float64
	for k := range warm + turns {
		var took [2]time.Duration
		for _, which := range [][]int{{0, 1}, {1, 0}}[k%2] {
			began := time.Now()
			if err := do(which); err != nil {
				t.Fatal(err)
			}
			took[which] = time.Since(began)
		}
		if k >= warm {
			ratios = append(ratios, float64(took[1])/float64(took[0]))
		}
	}
	slices.Sort(ratios)
	return ratios[len(ratios)/2]
}
