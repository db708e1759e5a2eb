package visits_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"netdelta/stats/simulate"
	"netdelta/stats/visits"
)

// Levels know a difference of 10% and none at all, on machines whose state lasts for 5, 50 and 500 ms, where the baseline is visited more often
// than the network, and visits are struck now and then. What the means over many rounds are off by is far less than what matters.
func TestLevelsKnowTheTruth(t *testing.T) {
	for _, jumps := range []bool{false, true} {
		for _, lasts := range []time.Duration{5 * time.Millisecond, 50 * time.Millisecond, 500 * time.Millisecond} {
			round := simulate.Sweeps{
				Levels: []float64{0, 0, 0, 0.1, 0.2, 0.3, 0.3}, Often: 3, Visit: 350 * time.Microsecond, Length: 80 * time.Millisecond,
				StateSD: 0.05, Lasts: lasts, Jumps: jumps, VisitSD: 0.02, Struck: 0.05, StruckBy: 0.2,
			}
			const rounds = 400
			rng := rand.New(rand.NewPCG(1, 2))
			var sum, squares [7]float64
			for range rounds {
				all, _ := round.Draw(rng)
				levels, beyond := visits.Levels(all, len(round.Levels))
				if len(beyond) != len(all) {
					t.Fatalf("%d visits, %d beyond the state", len(all), len(beyond))
				}
				for c, l := range levels {
					d := l - (levels[0]+levels[1])/2 - round.Levels[c]
					sum[c], squares[c] = sum[c]+d, squares[c]+d*d
				}
			}
			for c := 2; c < len(sum); c++ {
				mean := sum[c] / rounds
				scatter := math.Sqrt(squares[c]/rounds - mean*mean)
				if math.Abs(mean) > 0.0005+3*scatter/math.Sqrt(rounds) || scatter > 0.013 {
					t.Errorf("state of %v, jumps %v: client %d is off by %.4f, and scatters by %.4f", lasts, jumps, c, mean, scatter)
				}
			}
		}
	}
}

// A machine that doubles its time in the middle of a round changes no level.
func TestLevelsOnAMachineThatSlows(t *testing.T) {
	var all []visits.Visit
	for i := range 90 {
		v := visits.Visit{Client: i % 3, Log: 0.1 * float64(i%3)}
		if i > 44 {
			v.Log += math.Ln2
		}
		all = append(all, v)
	}
	levels, _ := visits.Levels(all, 3)
	for c, want := range []float64{-0.1, 0, 0.1} {
		if math.Abs(levels[c]-want) > 1e-3 {
			t.Errorf("levels %v, want -0.1, 0, 0.1", levels)
		}
	}
}

func TestLevelsOfFewVisits(t *testing.T) {
	if levels, beyond := visits.Levels(nil, 2); len(beyond) != 0 || !math.IsNaN(levels[0]) || !math.IsNaN(levels[1]) {
		t.Errorf("nothing gives %v, %v", levels, beyond)
	}
	if levels, _ := visits.Levels([]visits.Visit{{1, 3}}, 3); levels[1] != 0 || !math.IsNaN(levels[0]) {
		t.Errorf("one visit gives %v", levels)
	}
	if levels, _ := visits.Levels([]visits.Visit{{0, 1}, {1, 2}}, 2); math.Abs(levels[1]-levels[0]-1) > 1e-12 {
		t.Errorf("two visits give %v", levels)
	}
}
