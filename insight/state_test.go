package insight_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"netdelta/insight"
	"netdelta/result"
)

// moody is a world on a machine that is slow in some rounds, for all cells alike; slow says what one network's delta is then beyond its own.
type moody struct {
	world
	depth  float64 // by how much the machine is slower then, on the log scale
	lasts  int     // rounds, on average
	beyond float64
	swept  bool
}

// found are the checks of the state of the machine in a run of it.
func (w moody) found(t *testing.T, seed uint64) (found []result.Check) {
	t.Helper()
	w.seed = seed
	random := rand.New(rand.NewPCG(seed, 5))
	slow := make([][]bool, w.builds)
	for b := range slow {
		slow[b] = make([]bool, w.rounds)
		now := random.IntN(2) == 1
		for r := range slow[b] {
			if random.IntN(w.lasts) == 0 {
				now = random.IntN(2) == 1
			}
			slow[b][r] = now
		}
	}
	trials := w.trials(t)
	for i := range trials {
		b := &trials[i].Bursts
		for k, round := range b.Round {
			if w.swept {
				b.SweepLevel = append(b.SweepLevel, math.Log(b.P50[k])-w.drift*float64(round)/float64(w.rounds))
			}
			if !slow[trials[i].Build][round] {
				continue
			}
			b.P50[k] *= math.Exp(w.depth)
			if trials[i].Cell == "n0" {
				b.P50[k] *= math.Exp(w.beyond)
				if w.swept {
					b.SweepLevel[k] += w.beyond
				}
			}
		}
	}
	_, _, checks := deltasOf(w.cells(), trials, insight.Options{HeadlinesOnly: true})
	for _, c := range checks {
		if c.Check == insight.CheckState {
			found = append(found, c)
		}
	}
	return found
}

// A network that costs 38% while the machine is fast and 45% while it is slow is found, and alone.
func TestDeltaByState(t *testing.T) {
	t.Parallel()
	for _, swept := range []bool{false, true} {
		w := moody{world: seven(38, 10, 20, 3), depth: 0.15, lasts: 2, beyond: math.Log(1.45 / 1.38), swept: swept}
		w.rounds, w.builds = 20, 8
		const runs = 50
		named := 0
		for seed := range runs {
			found := w.found(t, uint64(seed+1))
			if len(found) == 1 && found[0].Trial == "n0" {
				named++
			}
		}
		t.Logf("swept %v: named in %d of %d runs", swept, named, runs)
		if named < 48 {
			t.Errorf("swept %v: named in %d of %d runs", swept, named, runs)
		}
		says := w.found(t, 1)[0].Observed
		if !strings.Contains(says, "n0 against host: +38% while the machine was fast, +45% while slow") {
			t.Errorf("it says %q", says)
		}
	}
}

// Networks whose delta is one and the same are not named, on machines with a state and without, noisy or not.
func TestDeltaOfNoState(t *testing.T) {
	t.Parallel()
	quiet := seven(3, 3.5, 11, 11.7, 16, 30, 31)
	quiet.rounds, quiet.builds = 12, 8
	noisy, drifting := quiet, quiet
	noisy.roundSD = 0.1
	drifting.drift = 0.3
	for name, w := range map[string]moody{
		"no state": {world: quiet, lasts: 1}, "no state, noisy": {world: noisy, lasts: 1}, "drifting": {world: drifting, lasts: 1},
		"a state": {world: quiet, depth: 0.15, lasts: 2}, "a state, noisy": {world: noisy, depth: 0.3, lasts: 3},
		"in sweeps": {world: noisy, depth: 0.15, lasts: 2, swept: true},
	} {
		const runs = 100
		named := 0
		for seed := range runs {
			if len(w.found(t, uint64(seed+1))) > 0 {
				named++
			}
		}
		t.Logf("%s: %d of %d", name, named, runs)
		// 1% is 1, and three standard deviations more 4.
		if named > 4 {
			t.Errorf("%s: named in %d of %d runs", name, named, runs)
		}
	}
}
