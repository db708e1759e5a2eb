package main

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"netdelta/stats"
	"netdelta/stats/simulate"
	"netdelta/stats/visits"
)

// leveller makes levels of a round's visits; only their differences count.
type leveller struct {
	name   string
	levels func(all []visits.Visit, sweeps []int, clients int) []float64
}

func levellers() []leveller {
	return []leveller{
		{"less the mean of the sweep's baselines", bySweep},
		{"less each single visit to a baseline", byPair},
		{fmt.Sprintf("**less the state by the %d visits around**", 2*visits.Around), func(all []visits.Visit, _ []int, clients int) []float64 {
			levels, _ := visits.Levels(all, clients)
			return levels
		}},
	}
}

// bySweep takes the mean of a client's visits in each sweep less the mean of the baselines'.
func bySweep(all []visits.Visit, sweeps []int, clients int) []float64 {
	above := make([][]float64, clients)
	for from := 0; from < len(all); {
		to := from
		sums, counts := make([]float64, clients), make([]float64, clients)
		for ; to < len(all) && sweeps[to] == sweeps[from]; to++ {
			sums[all[to].Client] += all[to].Log
			counts[all[to].Client]++
		}
		base := (sums[0] + sums[1]) / (counts[0] + counts[1])
		for c := range clients {
			above[c] = append(above[c], sums[c]/counts[c]-base)
		}
		from = to
	}
	levels := make([]float64, clients)
	for c := range levels {
		levels[c] = stats.Median(above[c])
	}
	return levels
}

// byPair takes each visit less each one to a baseline in the same sweep.
func byPair(all []visits.Visit, sweeps []int, clients int) []float64 {
	pairs := make([][]float64, clients)
	for from := 0; from < len(all); {
		to := from + 1
		for to < len(all) && sweeps[to] == sweeps[from] {
			to++
		}
		for i := from; i < to; i++ {
			for k := from; k < to; k++ {
				if i != k && all[k].Client < 2 {
					pairs[all[i].Client] = append(pairs[all[i].Client], all[i].Log-all[k].Log)
				}
			}
		}
		from = to
	}
	levels := make([]float64, clients)
	for c := range levels {
		levels[c] = stats.Median(pairs[c])
	}
	return levels
}

// Truths of the table's runs. Set-ups and connections scatter as measured; latencies of the networks are up to 30% above the baseline's.
const (
	stateBuilds, stateRounds = 6, 10
	stateSD                  = 0.05
	setupSD                  = 0.003
	connectionSD             = 0.003
)

// stateWorld is one kind of a machine.
type stateWorld struct {
	jumps           bool
	lasts           time.Duration
	scatter, struck float64 // of a visit, and the share of visits
	visit, round    time.Duration
}

// stateWorlds are short visits of which few are struck, and long ones of which many are: ends on one processor, and ends that wake each
// other while others use the machine.
func stateWorlds() []stateWorld {
	var worlds []stateWorld
	for _, jumps := range []bool{false, true} {
		for _, lasts := range []time.Duration{5 * time.Millisecond, 50 * time.Millisecond, 500 * time.Millisecond} {
			short := stateWorld{jumps, lasts, 0.01, 0.03, 350 * time.Microsecond, 80 * time.Millisecond}
			noisy := short
			noisy.scatter = 0.03
			long := stateWorld{jumps, lasts, 0.03, 0.2, time.Millisecond, 50 * time.Millisecond}
			worlds = append(worlds, short, noisy, long)
		}
	}
	return worlds
}

// printStates prints what levels err by on a machine with a state.
func printStates(w io.Writer, trials int) {
	trials = max(1, trials/4) // a run has some ten thousand visits
	fmt.Fprintf(w, "One of twelve networks, %d rounds in each of %d builds; %d runs each. The state of the machine scatters by %.0f%%, visits by the\n"+
		"figure given; a share of them is struck: lengthened by 10%% or more. Rounds of 80 ms with visits of 0.35 ms, and of 50 ms with visits of\n"+
		"1 ms. Bias / scatter of one round's delta / intervals that hold the truth / their median half width.\n\n", stateRounds, stateBuilds, trials, 100*stateSD)
	fmt.Fprintf(w, "| state | visits")
	for _, l := range levellers() {
		fmt.Fprintf(w, " | %s", l.name)
	}
	fmt.Fprintf(w, " |\n|---|---|---|---|---|\n")
	for _, world := range stateWorlds() {
		printState(w, world, trials)
	}
}

func printState(w io.Writer, world stateWorld, trials int) {
	name := "wanders"
	if world.jumps {
		name = "jumps"
	}
	fmt.Fprintf(w, "| %s, %d ms | %.2g ms, %.0f%%, %.0f%% struck", name, world.lasts.Milliseconds(), float64(world.visit)/1e6, 100*world.scatter, 100*world.struck)
	of := levellers()
	rounds, halves, held := make([][]float64, len(of)), make([][]float64, len(of)), make([]int, len(of))
	for trial := range trials {
		rng := rand.New(rand.NewPCG(uint64(trial), 17))
		builds, truth := world.run(rng, of)
		for i := range of {
			e := stats.Compare(builds[i], stats.Options{})
			if e.Low <= truth && truth <= e.High {
				held[i]++
			}
			halves[i] = append(halves[i], (e.High-e.Low)/2)
			for _, b := range builds[i] {
				for _, d := range b.Deltas {
					rounds[i] = append(rounds[i], d-truth)
				}
			}
		}
	}
	for i := range of {
		mean := stats.Mean(rounds[i])
		squares := 0.0
		for _, x := range rounds[i] {
			squares += (x - mean) * (x - mean)
		}
		fmt.Fprintf(w, " | %+.2f%% / %.2f%% / %.1f%% / %.2f%%", 100*mean, 100*math.Sqrt(squares/float64(len(rounds[i]))),
			100*float64(held[i])/float64(trials), 100*stats.Median(halves[i]))
	}
	fmt.Fprintln(w, " |")
}

// run is a run of one network's deltas, as each of the levellers makes them of the same visits.
func (s stateWorld) run(rng *rand.Rand, of []leveller) (builds [][]stats.Build, truth float64) {
	const networks = 12
	levels := make([]float64, 2+networks)
	for c := 2; c < len(levels); c++ {
		levels[c] = 0.3 * float64(c-1) / networks
	}
	builds, truth = make([][]stats.Build, len(of)), levels[4]
	for range stateBuilds {
		setup := slices.Clone(levels)
		for c := range setup {
			setup[c] += setupSD * rng.NormFloat64()
		}
		build := make([]stats.Build, len(of))
		for range stateRounds {
			round := simulate.Sweeps{
				Levels: slices.Clone(setup), Often: 2, Visit: s.visit, Length: s.round,
				StateSD: stateSD, Lasts: s.lasts, Jumps: s.jumps, VisitSD: s.scatter, Struck: s.struck, StruckBy: 0.2,
			}
			for c := range round.Levels {
				round.Levels[c] += connectionSD * rng.NormFloat64()
			}
			all, sweeps := round.Draw(rng)
			for i, l := range of {
				got := l.levels(all, sweeps, len(levels))
				build[i].Deltas = append(build[i].Deltas, got[4]-(got[0]+got[1])/2)
				build[i].HalfGaps = append(build[i].HalfGaps, (got[0]-got[1])/2)
			}
		}
		for i := range of {
			builds[i] = append(builds[i], build[i])
		}
	}
	return builds, truth
}
