package insight_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"netdelta/insight"
	"netdelta/result"
)

// plagued is a world some of whose bursts take longer.
type plagued struct {
	world
	share, size                    float64 // of the bursts that are struck, and by how much on the log scale
	onlyNetworks                   bool
	caughtNetworks, caughtBaseline float64 // shares of what struck that is caught and left out
}

// measure measures it, and gives the checks of one kind and the delta of a network.
func (w plagued) measure(t *testing.T, seed uint64) (found map[string][]result.Check, delta result.Delta) {
	t.Helper()
	w.seed = seed
	random := rand.New(rand.NewPCG(seed, 99))
	trials := w.trials(t)
	for i := range trials {
		b, caught := &trials[i].Bursts, w.caughtNetworks
		if trials[i].Role != result.RoleCell {
			caught = w.caughtBaseline
		}
		for k := range b.P50 {
			if random.Float64() >= w.share || w.onlyNetworks && trials[i].Role != result.RoleCell {
				continue
			}
			b.P50[k] *= math.Exp(w.size)
			if random.Float64() < caught {
				b.Disturbed[k] = "cpu-pressure"
			}
		}
	}
	deltas, _, checks := deltasOf(w.cells(), trials, insight.Options{HeadlinesOnly: true})
	found = map[string][]result.Check{}
	for _, c := range checks {
		found[c.Check] = append(found[c.Check], c)
	}
	return found, find(t, deltas, w.networks[0], "p50")
}

// A disturbance that is caught more often on networks than on the baseline biases deltas: it is named.
func TestUnequalExclusionIsNamed(t *testing.T) {
	w := plagued{world: seven(10, 12, 20), share: 0.15, size: 0.5, caughtNetworks: 0.8, caughtBaseline: 0.4}
	w.rounds, w.roundSD = 60, 0.07
	const runs = 100
	named, held, bias := 0, 0, 0.0
	for seed := range runs {
		found, d := w.measure(t, uint64(seed+1))
		if len(found[insight.CheckLeftOut]) > 0 {
			named++
		}
		truth := math.Exp(w.logs["n0"])
		if *d.RatioLow <= truth && truth <= *d.RatioHigh {
			held++
		}
		bias += (d.Ratio/truth - 1) / runs
	}
	t.Logf("named in %d of %d runs; the delta is off by %+.1f%%, and the interval holds the truth in %d", named, runs, 100*bias, held)
	if named < 95 {
		t.Errorf("unequal exclusion is named in %d of %d runs", named, runs)
	}
	found, _ := w.measure(t, 1)
	if says := found[insight.CheckLeftOut][0]; !strings.Contains(says.Observed, "of the networks'") || !strings.Contains(says.Expected, "host") {
		t.Errorf("it says %+v", says)
	}
}

// A stall in a quarter of a network's bursts is neither the typical burst nor the mean: both are told.
func TestUnequalScatterIsNamed(t *testing.T) {
	w := plagued{world: seven(10), share: 0.25, size: math.Log(1.5), onlyNetworks: true}
	w.rounds, w.roundSD = 40, 0.03
	const runs = 100
	named := 0
	for seed := range runs {
		found, _ := w.measure(t, uint64(seed+1))
		if len(found[insight.CheckScatter]) == 1 {
			named++
		}
	}
	t.Logf("named in %d of %d runs", named, runs)
	if named < 99 {
		t.Errorf("unequal scatter is named in %d of %d runs", named, runs)
	}
	found, d := w.measure(t, 1)
	if math.Abs(d.Ratio/1.1-1) < 0.03 {
		t.Errorf("the delta is %v, and not moved by the stalls", d.Ratio)
	}
	for _, want := range []string{"the delta of n0, +", "the typical burst is at +13%", "the mean of all at +22%"} {
		if says := found[insight.CheckScatter][0].Observed; !strings.Contains(says, want) {
			t.Errorf("%q does not say %q", says, want)
		}
	}
}

// Runs whose networks and baseline scatter alike are not warned of, whatever the noise.
func TestEvenRunsAreNotWarnedOf(t *testing.T) {
	t.Parallel()
	quiet := seven(3, 3.5, 11, 11.7, 16, 30, 31)
	quiet.rounds, quiet.builds = 10, 8
	noisy := quiet
	noisy.roundSD = 0.1
	for name, w := range map[string]plagued{
		"quiet": {world: quiet}, "noisy": {world: noisy},
		"disturbed, and caught alike": {world: quiet, share: 0.1, size: 0.4, caughtNetworks: 0.6, caughtBaseline: 0.6},
		"stalled alike":               {world: noisy, share: 0.25, size: 0.4},
	} {
		const runs = 200
		warned := 0
		for seed := range runs {
			found, _ := w.measure(t, uint64(seed+1))
			if len(slices.Concat(found[insight.CheckScatter], found[insight.CheckLeftOut])) > 0 {
				warned++
			}
		}
		t.Logf("%s: %d of %d", name, warned, runs)
		// 1% are 2, and three standard deviations more 6.
		if warned > 6 {
			t.Errorf("%s: %d of %d runs are warned of", name, warned, runs)
		}
	}
}
