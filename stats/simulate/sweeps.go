package simulate

import (
	"math"
	"math/rand/v2"
	"time"

	"netdelta/stats/visits"
)

// Sweeps is a round of visits on a machine whose state all networks share: client 0 is the baseline, 1 its A/A control, and the others are
// networks.
type Sweeps struct {
	// Levels are the logarithms of the clients' latencies, and Often how often a sweep visits the first two.
	Levels []float64
	Often  int
	// Visit is how long a visit takes, and Length all of a round.
	Visit, Length time.Duration
	// The state of the machine scatters by StateSD and lasts about Lasts: it wanders, or it jumps between two levels.
	StateSD float64
	Lasts   time.Duration
	Jumps   bool
	// VisitSD is the scatter of a visit. A share, Struck, is lengthened besides, by half of StruckBy or more, 1.5 times it on average.
	VisitSD, Struck, StruckBy float64
}

// Draw makes a round's visits, with the sweep that each belongs to.
func (s Sweeps) Draw(rng *rand.Rand) (all []visits.Visit, sweeps []int) {
	var order []int
	for c := range s.Levels {
		visits := 1
		if c < 2 {
			visits = s.Often
		}
		for range visits {
			order = append(order, c)
		}
	}
	state := s.begin(rng)
	for sweep := 0; sweep < 2 || len(all)*int(s.Visit) < int(s.Length); sweep++ {
		rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		for _, c := range order {
			noise := s.VisitSD * rng.NormFloat64()
			if rng.Float64() < s.Struck {
				noise += s.StruckBy * (0.5 + rng.ExpFloat64())
			}
			all, sweeps = append(all, visits.Visit{Client: c, Log: s.Levels[c] + state + noise}), append(sweeps, sweep)
			state = s.next(rng, state)
		}
	}
	return all, sweeps
}

// begin is a state of the machine.
func (s Sweeps) begin(rng *rand.Rand) float64 {
	if !s.Jumps {
		return s.StateSD * rng.NormFloat64()
	}
	return s.StateSD * float64(2*rng.IntN(2)-1)
}

// next is the state one visit later: all states are as likely as before, and resemble each other by exp(-time/Lasts).
func (s Sweeps) next(rng *rand.Rand, state float64) float64 {
	kept := math.Exp(-float64(s.Visit) / float64(s.Lasts))
	switch {
	case !s.Jumps:
		return kept*state + math.Sqrt(1-kept*kept)*s.begin(rng)
	case rng.Float64() < (1-kept)/2:
		return -state
	}
	return state
}
