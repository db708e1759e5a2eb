package insight_test

import (
	"slices"
	"testing"

	"netdelta/insight"
	"netdelta/result"
	"netdelta/stats"
)

// What other programs may have caused that ran throughout gets no verdict. What is larger than that still does.
func TestBusyThroughout(t *testing.T) {
	const slower, same, open = string(stats.Slower), string(stats.Same), string(stats.Unresolved)
	for name, c := range map[string]struct {
		load func(build int) float64
		want map[string]string
		busy bool
	}{
		"a quiet machine":       {func(int) float64 { return 0.05 }, map[string]string{"bridge": slower, "macvlan": same, "vxlan": slower}, false},
		"a fifth of the time":   {func(int) float64 { return 0.21 }, map[string]string{"bridge": open, "macvlan": open, "vxlan": slower}, true}, // up to 1.27 times
		"half of it":            {func(int) float64 { return 0.5 }, map[string]string{"bridge": open, "macvlan": open, "vxlan": open}, true},
		"all of it":             {func(int) float64 { return 1 }, map[string]string{"bridge": open, "macvlan": open, "vxlan": open}, true},
		"after the first build": {func(build int) float64 { return min(1, float64(build)) }, map[string]string{"bridge": slower, "macvlan": same, "vxlan": slower}, false},
		"before the first one":  {func(build int) float64 { return max(0, 1-float64(build)) }, map[string]string{"bridge": slower, "macvlan": same, "vxlan": slower}, false},
		"in six of eight":       {func(build int) float64 { return float64(min(1, (7-build)/2)) }, map[string]string{"bridge": open, "macvlan": open, "vxlan": open}, true},
	} {
		w := usual()
		trials := w.trials(t)
		for i := range trials {
			trials[i].OtherLoad = c.load(trials[i].Build)
		}
		deltas, _, checks := deltasOf(w.cells(), trials, insight.Options{Sequential: true})
		for network, verdict := range c.want {
			if d := find(t, deltas, network, "p50"); d.Verdict != verdict {
				t.Errorf("%s: %s is %s, want %s", name, network, d.Verdict, verdict)
			}
		}
		if busy := slices.ContainsFunc(checks, func(c result.Check) bool { return c.Check == insight.CheckBusy }); busy != c.busy {
			t.Errorf("%s: said to be busy: %v", name, busy)
		}
		for cell, known := range insight.Settled(w.cells(), trials, insight.Options{Sequential: true}) {
			if known != (c.want[cell] != open) {
				t.Errorf("%s: %s is settled: %v", name, cell, known)
			}
		}
	}
}
