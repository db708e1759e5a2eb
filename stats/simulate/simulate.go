// Package simulate makes experiments whose truth is known: the ground that package stats is tried on. It draws the
// logarithms of what bursts would have measured, build by build and round by round, with the noises that real
// machines show. It is pure: the same World and seed give the same experiment.
package simulate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"time"

	"netdelta/stats"
	"netdelta/stats/visits"
)

// Noise is how the bursts of one build scatter.
type Noise string

// The noises. All have the standard deviation World.RoundSD, but Drifting and Stalling add to it.
const (
	Normal         Noise = "normal"
	LogNormal      Noise = "log-normal"     // skewed (by 6.2): most bursts are alike, a few far slower
	Bimodal        Noise = "bimodal"        // three bursts of ten in a slow mode, 3.5 scatters of a mode away
	Autocorrelated Noise = "autocorrelated" // each set-up its own AR(1), 0.8 from one round to the next
	Stalling       Noise = "stalling"       // normal, but 3% of the bursts are disturbed, and take half as long again on average
	Drifting       Noise = "drifting"       // normal, on a machine that slows by 10% in a build, and set-ups that drift apart
)

// Noises lists every Noise.
func Noises() []Noise { return []Noise{Normal, LogNormal, Bimodal, Autocorrelated, Drifting, Stalling} }

// Between is how the builds of a set-up scatter.
type Between string

// The ways of builds. All have about the standard deviation World.BuildSD, but Uneven and BadBuild add to it.
const (
	Even        Between = ""              // normal, and alike for all set-ups
	Uneven      Between = "uneven"        // normal, each set-up with a scatter of its own: one in six has over twice the median, one less than half
	HeavyTailed Between = "heavy-tailed"  // Student's t with three degrees of freedom
	TwoPlaces   Between = "two places"    // every fifth build lands in a slower place
	BadBuild    Between = "one bad build" // normal, but in the second build three set-ups of ten are thrown off by about 8 scatters
)

// Betweens lists every Between.
func Betweens() []Between { return []Between{Even, Uneven, HeavyTailed, TwoPlaces, BadBuild} }

const (
	logNormalSD   = 2.1611974158950877 // of exp(N(0,1)): sqrt((e-1)*e)
	logNormalMean = 1.6487212707001282 // of exp(N(0,1)): sqrt(e)
	slowShare     = 0.3                // of bursts in the slow mode
	slowAway      = 3.5                // in scatters of one mode
	memory        = 0.8                // of the AR(1)
	commonDrift   = 0.10               // of the whole machine over one build, on the log scale
	stallShare    = 0.03               // of bursts
	stallMean     = 0.4                // on the log scale, exponentially distributed
	ownDriftSD    = 0.01               // of one set-up over one build, on the log scale
	unevenSD      = 0.7                // of the logarithm of a set-up's scatter
	slowPlace     = 0.2                // of builds
	placeAway     = 5.0                // in scatters of one place
	badShare      = 0.3                // of set-ups in a bad build
	badSD         = 8.0                // in scatters of a build
)

// World is the truth of an experiment. Standard deviations are on the natural log scale: 0.01 is about 1%.
type World struct {
	Noise Noise
	// Shifts are the true deltas of the cells against the baseline: log ratios.
	Shifts []float64
	// RoundSD is the scatter of one burst about its build. A delta of one round scatters by sqrt(1.5) times this,
	// since it holds one burst of the cell and the mean of two of the baseline.
	RoundSD float64
	// BuildSD is the scatter of the builds of one set-up, Between its kind.
	BuildSD float64
	Between Between
	// SetupSD is the scatter of what no rebuilding removes: an error that one set-up keeps through the whole run.
	SetupSD float64
	// MinRounds and MaxRounds bound the rounds of a build, drawn evenly.
	MinRounds, MaxRounds int
}

// Experiment yields builds one after the other.
type Experiment struct {
	world  World
	random *rand.Rand
	kept   []float64 // by set-up
	scale  []float64 // of its builds' scatter, by set-up
	builds int
}

// Sample is what one build measured: the log value of set-up s in round r. Set-ups 0 and 1 are the baseline, twice;
// set-up 2+c is cell c.
type Sample [][]float64

// Start begins an experiment in the world. It panics on a World without rounds or of an unknown Noise: that is a
// mistake in a program, not in data.
func (w World) Start(seed uint64) *Experiment {
	if w.MinRounds < 1 || w.MaxRounds < w.MinRounds {
		panic(fmt.Sprintf("simulate: a build needs rounds, got %d to %d", w.MinRounds, w.MaxRounds))
	}
	e := &Experiment{world: w, random: rand.New(rand.NewPCG(seed, 0x6e6574)), kept: make([]float64, len(w.Shifts)+2)}
	e.scale = slices.Repeat([]float64{w.BuildSD}, len(e.kept))
	for s := range e.kept {
		if w.Between == Uneven {
			e.scale[s] *= math.Exp(unevenSD * e.random.NormFloat64())
		}
		e.kept[s] = w.SetupSD * e.random.NormFloat64()
		if s >= 2 {
			e.kept[s] += w.Shifts[s-2]
		}
	}
	return e
}

// Build draws the next build.
func (e *Experiment) Build() Sample {
	w := e.world
	rounds := w.MinRounds + e.random.IntN(w.MaxRounds-w.MinRounds+1)
	sample := make(Sample, len(e.kept))
	e.builds++
	for s := range sample {
		level := e.kept[s] + e.scale[s]*e.level()
		sample[s] = make([]float64, rounds)
		e.scatter(sample[s])
		for r := range sample[s] {
			sample[s][r] += level
		}
	}
	if w.Noise == Drifting {
		e.drift(sample)
	}
	return sample
}

// level draws what one build of a set-up happens to be, in scatters.
func (e *Experiment) level() float64 {
	x := e.random.NormFloat64()
	switch e.world.Between {
	case Even, Uneven:
	case HeavyTailed:
		squares := 0.0
		for range 3 {
			y := e.random.NormFloat64()
			squares += y * y
		}
		x /= math.Sqrt(squares) // t/sqrt(3): its variance is 1
	case TwoPlaces:
		if e.random.Float64() < slowPlace {
			x += placeAway
		}
		x /= math.Sqrt(1 + placeAway*placeAway*slowPlace*(1-slowPlace))
	case BadBuild:
		if e.builds == 2 && e.random.Float64() < badShare {
			x += badSD * e.random.NormFloat64()
		}
	default:
		panic(fmt.Sprintf("simulate: unknown kind of builds %q", e.world.Between))
	}
	return x
}

// scatter fills y with the noise of the bursts of one set-up in one build.
func (e *Experiment) scatter(y []float64) {
	sd, random := e.world.RoundSD, e.random
	switch e.world.Noise {
	case Normal, Drifting, Stalling:
		for r := range y {
			y[r] = sd * random.NormFloat64()
			if e.world.Noise == Stalling && random.Float64() < stallShare {
				y[r] += stallMean * random.ExpFloat64()
			}
		}
	case LogNormal:
		for r := range y {
			y[r] = sd * (math.Exp(random.NormFloat64()) - logNormalMean) / logNormalSD
		}
	case Bimodal:
		unit := sd / math.Sqrt(1+slowAway*slowAway*slowShare*(1-slowShare))
		for r := range y {
			y[r] = random.NormFloat64() - slowAway*slowShare
			if random.Float64() < slowShare {
				y[r] += slowAway
			}
			y[r] *= unit
		}
	case Autocorrelated:
		state := random.NormFloat64()
		for r := range y {
			y[r] = sd * state
			state = memory*state + math.Sqrt(1-memory*memory)*random.NormFloat64()
		}
	default:
		panic(fmt.Sprintf("simulate: unknown noise %q", e.world.Noise))
	}
}

// drift slows the whole machine along the build, burst by burst in each round's random order, and lets every set-up
// wander off on a slope of its own.
func (e *Experiment) drift(sample Sample) {
	rounds := len(sample[0])
	slopes := make([]float64, len(sample))
	for s := range slopes {
		slopes[s] = ownDriftSD * e.random.NormFloat64()
	}
	for r := range rounds {
		for place, s := range e.random.Perm(len(sample)) {
			at := (float64(r) + float64(place)/float64(len(sample))) / float64(rounds)
			sample[s][r] += at*commonDrift + (at-0.5)*slopes[s]
		}
	}
}

// Cell pairs cell c, counted from 0, with the baseline of the same rounds.
func (s Sample) Cell(c int) stats.Build { return stats.Pair(s[2+c], s[0], s[1]) }

// Null pairs the baseline with its A/A control.
func (s Sample) Null() stats.Build { return stats.Pair(s[0], s[1], s[1]) }

// Parallel runs one trial for each index, on all CPUs. A trial writes only to its own slot, so the outcome depends
// on the seeds alone.
func Parallel[T any](n int, trial func(i int) T) []T {
	out, workers := make([]T, n), runtime.GOMAXPROCS(0)
	var wait sync.WaitGroup
	for w := range workers {
		wait.Go(func() {
			for i := w; i < n; i += workers {
				out[i] = trial(i)
			}
		})
	}
	wait.Wait()
	return out
}

// Run is an experiment that was carried through, as a runner would.
type Run struct {
	Cells []stats.Estimate // by cell
	Null  stats.Estimate
	// Builds is how many builds the cells took together: the cost.
	Builds int
}

// Run carries an experiment through: builds are added, the cells looked at after each, and a cell that is resolved is
// dropped from further builds, from stats.FirstLook on, until all are or maxBuilds is reached. The baseline is in every build.
func (w World) Run(seed uint64, maxBuilds int, o stats.Options, resolved func(stats.Estimate) bool) Run {
	e, run := w.Start(seed), Run{Cells: make([]stats.Estimate, len(w.Shifts))}
	cells, null, done := make([][]stats.Build, len(w.Shifts)), []stats.Build(nil), make([]bool, len(w.Shifts))
	for open := len(cells); open > 0 && len(null) < maxBuilds; {
		sample := e.Build()
		null = append(null, sample.Null())
		for c := range cells {
			if done[c] {
				continue
			}
			run.Builds++
			cells[c] = append(cells[c], sample.Cell(c))
			if len(cells[c]) < stats.FirstLook && len(cells[c]) < maxBuilds {
				continue
			}
			run.Cells[c] = stats.Compare(cells[c], o)
			if resolved(run.Cells[c]) {
				done[c] = true
				open--
			}
		}
	}
	run.Null = stats.Compare(null, o)
	return run
}

// P are the p values of all cells, not corrected.
func (r Run) P() []float64 {
	p := make([]float64, len(r.Cells))
	for c, e := range r.Cells {
		p[c] = e.P
	}
	return p
}

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
