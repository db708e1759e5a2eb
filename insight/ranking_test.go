package insight_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"netdelta/insight"
	"netdelta/report/words"
	"netdelta/result"
)

// seven is a world of seven networks with these true percents above the baseline.
func seven(percents ...float64) world {
	w := world{logs: map[string]float64{}, builds: 12, rounds: 4, buildSD: 0.003, roundSD: 0.008}
	for i, p := range percents {
		name := fmt.Sprintf("n%d", i)
		w.networks, w.logs[name] = append(w.networks, name), math.Log1p(p/100)
	}
	return w
}

// Of 42 pairs of networks that all differ, direct contrasts leave fewer tied than intervals against the baseline that overlap.
func TestDirectContrastsLeaveFewerTied(t *testing.T) {
	const settings = 60
	tied, overlapping := 0, 0
	for seed := range settings {
		w := seven(3, 3.5, 11, 11.7, 16, 30, 31)
		w.seed = uint64(seed + 1)
		trials := w.trials(t)
		deltas, _, _ := insight.Deltas(w.cells(), trials, insight.Options{HeadlinesOnly: true})
		contrasts := insight.Contrasts(w.cells(), trials, insight.Options{})
		if len(contrasts) != 21 {
			t.Fatalf("%d contrasts of seven networks", len(contrasts))
		}
		for _, c := range contrasts {
			if c.Cheaper == "" {
				tied++
			} else if c.Cheaper != c.Cell {
				t.Errorf("seed %d: %s is called cheaper than %s", seed, c.Other, c.Cell)
			}
			aLow, aHigh := insight.CostRange(find(t, deltas, c.Cell, "p50"))
			bLow, bHigh := insight.CostRange(find(t, deltas, c.Other, "p50"))
			if aLow <= bHigh && bLow <= aHigh {
				overlapping++
			}
		}
	}
	t.Logf("of 42 pairs that differ, %.1f are tied by direct contrasts and %.1f by overlap", 2*float64(tied)/settings, 2*float64(overlapping)/settings)
	if tied*5 > overlapping*4 { // measured: 3.0 and 4.3
		t.Errorf("%d pairs are tied, and %d intervals overlap", tied, overlapping)
	}
}

// In settings whose networks are all alike, any two are called different as rarely as is promised.
func TestAlikeNetworksAreTied(t *testing.T) {
	const runs = 400
	wrong := 0
	for seed := range runs {
		w := seven(10, 10, 10, 10, 10, 10, 10)
		w.rounds, w.seed = 2, uint64(seed+1)
		trials := w.trials(t)
		p := insight.Part{Confidence: 0.95, Contrasts: insight.Contrasts(w.cells(), trials, insight.Options{})}
		p.Deltas, _, _ = insight.Deltas(w.cells(), trials, insight.Options{HeadlinesOnly: true})
		if len(p.Tiers(p.Headlines())) > 1 {
			wrong++
		}
	}
	// 5% are 20, and three standard deviations more 33. Intervals that lie apart add next to none.
	if wrong > 33 {
		t.Errorf("in %d of %d settings two networks differ that are the same", wrong, runs)
	}
}

// Networks that no build has in common, so that their contrast knows nothing, are not tied where their intervals lie far apart.
func TestFarApartIsNotTied(t *testing.T) {
	run := runOf(measured("macvlan", "slower", 2.6, 3.5, 4.4), measured("ebpf-routed", "slower", 10, 12, 14), measured("bridge", "slower", 12, 16, 20), measured("sockmap", "slower", 26, 28, 31))
	run.Confidence = 0.95
	run.Contrasts = nil
	if got := words.Conclusion(insight.Conclude(insight.Parts(run)[0])); got != "Across nodes, macvlan costs the least (+3.5%, +1.05 µs) and sockmap the most (+28%, +8.40 µs); tied: ebpf-routed, bridge." {
		t.Error(got)
	}
	floor := 0.4 // what the baseline may differ by from itself
	for i := range run.Deltas {
		run.Deltas[i].Floor = &floor
	}
	if got := words.Conclusion(insight.Conclude(insight.Parts(run)[0])); !strings.Contains(got, "macvlan, ebpf-routed, bridge and sockmap cost more than host") {
		t.Error("within the noise floor: " + got)
	}
}

// Networks that were visited in the same sweeps are compared by what they took there, not by medians of whole bursts.
func TestContrastsPairSweeps(t *testing.T) {
	w := seven(10, 10.2)
	w.roundSD = 0.2
	trials := w.trials(t)
	for i := range trials {
		for range trials[i].Bursts.Round {
			cell := w.cells()[slices.IndexFunc(w.cells(), func(c result.Cell) bool { return c.ID == trials[i].Cell })]
			trials[i].Bursts.SweepLevel = append(trials[i].Bursts.SweepLevel, w.logs[cell.Network]+1e-5*float64(trials[i].Build%3))
		}
	}
	c := insight.Contrasts(w.cells(), trials, insight.Options{})[0]
	if c.Cheaper != "n0" || math.Abs(c.Ratio-1.100/1.102) > 1e-4 {
		t.Errorf("contrast of two networks in one sweep: %+v", c)
	}
}

// Files of other programs, which nothing pairs, are compared unpaired.
func TestContrastsOfUnpairedRuns(t *testing.T) {
	w := seven(10, 40)
	w.builds = 4
	c := insight.Contrasts(w.cells(), w.trials(t), insight.Options{Unpaired: true})[0]
	if c.Cheaper != "n0" || c.Blocks != 4 {
		t.Errorf("contrast of two networks that differ by a quarter: %+v", c)
	}
	if d := insight.Contrasts(w.cells(), w.trials(t), insight.Options{})[0]; *d.RatioLow == *c.RatioLow {
		t.Error("an unpaired contrast has the interval of a paired one")
	}
}
