// Package plan decides what is measured when: it expands a study into cells, fits them into a time budget, orders them
// within rounds, and says after each round what comes next. It is pure: it has no clock, and time is handed to it.
package plan

import (
	"math/rand/v2"
	"time"

	"netdelta/experiment/study"
)

// Defaults of the scheduler.
const (
	// MinBuilds is the least number of builds that a run is planned for: large differences are known from three on, small ones are not.
	MinBuilds = 6
	// MinRounds is the least number of rounds in a build that are worth its set-up.
	MinRounds = 10
)

// Rules are the limits of a run.
type Rules struct {
	// Budget is how long the run may take, from its start.
	Budget time.Duration
	// Builds is the number of builds that the budget is divided among at first.
	Builds int
	// MinBuilds is the number of builds of each cell before it can be left out.
	MinBuilds int
	// Rounds is the number of rounds in each build; zero takes as many as fit.
	Rounds int
	// MinRounds is the least number of rounds in a build.
	MinRounds int
	// OnePass says that a build has one round because of the strategy, not because the study asks for so many: the run may then leave
	// out what turns out not to fit, like one whose rounds follow from the budget.
	OnePass bool
	// MaxBuilds ends the run after so many builds even if time is left; zero does not.
	MaxBuilds int
	// Ground names what a run is on: "the cluster"; "" is this machine.
	Ground string
	// Seed determines the order of the states.
	Seed uint64
}

// RulesOf takes the rules from a study's design. Blocks, where they are given, are the number of builds at which the run ends.
func RulesOf(d study.Design) Rules {
	r := Rules{Budget: d.TimeBudget, Builds: d.Builds, MinBuilds: min(MinBuilds, d.Builds), Rounds: d.Rounds, MinRounds: MinRounds, Seed: d.Seed}
	if d.Rounds > 0 {
		r.MinRounds = d.Rounds
	}
	if d.Blocks > 0 {
		r.Builds, r.MaxBuilds, r.MinBuilds = d.Blocks, d.Blocks, min(MinBuilds, d.Blocks)
	}
	return r
}

// Order is the order in which n cells are visited in a round: a permutation of 0 to n-1, the same for the same seed, build
// and round, and independent of all others.
func Order(seed uint64, build, round, n int) []int {
	return rand.New(rand.NewPCG(scramble(seed^scramble(uint64(build))), uint64(round))).Perm(n)
}

// scramble spreads neighbouring numbers over all 64 bits (the finalizer of splitmix64), so that a seed and a build never add
// up to the same as another seed and build.
func scramble(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
