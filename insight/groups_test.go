package insight_test

import (
	"math"
	"slices"
	"testing"

	"netdelta/insight"
	"netdelta/result"
)

// inParts are the trials of a world in which each network is measured in builds of its own, part after part in each block. The
// ground is another under each network, by so much of a log, and the baseline stands on it too.
func (w world) inParts(t testing.TB, ground map[string]float64) []result.Trial {
	t.Helper()
	var trials []result.Trial
	for i, network := range w.networks {
		one := w
		one.networks, one.seed = []string{network}, w.seed*100+uint64(i)
		for _, tr := range one.trials(t) {
			tr.Build = tr.Build*len(w.networks) + i
			for k := range tr.Bursts.P50 {
				tr.Bursts.P50[k] *= math.Exp(ground[network])
			}
			trials = append(trials, tr)
		}
	}
	slices.SortStableFunc(trials, func(a, b result.Trial) int { return a.Build - b.Build })
	return trials
}

// Each delta is against the baseline of its own builds, so that ground that is slow as a whole makes no difference.
func TestApartEachHasItsOwnBaseline(t *testing.T) {
	w := usual()
	w.builds = 6
	ground := map[string]float64{"bridge": 0, "macvlan": math.Log(3), "vxlan": math.Log(10)}
	deltas, null, _ := insight.Deltas(w.cells(), w.inParts(t, ground), insight.Options{HeadlinesOnly: true})
	for network, verdict := range map[string]string{"bridge": "slower", "macvlan": "same", "vxlan": "slower"} {
		d := find(t, deltas, network, "p50")
		near(t, network+" ratio", d.Ratio, math.Exp(w.logs[network]), 0.01)
		near(t, network+" baseline", d.BaselineValue, baseNS*math.Exp(ground[network]+w.drift/2), 0.02)
		near(t, network+" value", d.Value, d.BaselineValue*d.Ratio, 0.01)
		if d.Verdict != verdict || d.Blocks != 6 {
			t.Errorf("%s: want %s\n%s", network, verdict, show([]result.Delta{d}))
		}
	}
	if n := find(t, null, "host", "p50"); n.Blocks != 18 {
		t.Errorf("the null check has %d builds, and the baseline was in 18", n.Blocks)
	}
}

// In families of nulls that are measured apart a false claim is as rare as it is promised to be.
func TestApartFamiliesKeepTheirPromise(t *testing.T) {
	w := world{networks: []string{"a", "b", "c", "d"}, logs: map[string]float64{}, builds: 6, rounds: 3, buildSD: 0.01, roundSD: 0.001}
	const runs = 400
	claims := 0
	for seed := range runs {
		w.seed = uint64(seed + 1)
		deltas, _, _ := insight.Deltas(w.cells(), w.inParts(t, nil), insight.Options{HeadlinesOnly: true})
		if slices.ContainsFunc(deltas, func(d result.Delta) bool { return *d.PAdjusted < 0.05 }) {
			claims++
		}
	}
	// 5% are 20, and three standard deviations more 33.
	if claims > 33 || claims < 3 {
		t.Errorf("%d of %d runs claim something of nothing", claims, runs)
	}
}

// Networks that never stood in one build are compared by their deltas.
func TestApartClaims(t *testing.T) {
	w := usual()
	ground := map[string]float64{"macvlan": math.Log(3), "vxlan": math.Log(10)}
	for statement, want := range map[string]string{
		"p50 of bridge below vxlan":               insight.Confirmed,
		"p50 of vxlan below bridge":               insight.Contradicted,
		"p50 of macvlan within 2% of host":        insight.Confirmed,
		"p50 of bridge above macvlan by 10%..15%": insight.Confirmed,
		"p50 of bridge above macvlan by 25%..40%": insight.Contradicted,
		"p50 of others within 5% of each other":   insight.Contradicted,
	} {
		run, _ := w.claimed(t, statement)
		if c := judgedClaims(run, w.inParts(t, ground))[0]; c.Verdict != want || c.Measured == "" {
			t.Errorf("%s: %s, want %s: %s", statement, c.Verdict, want, c.Measured)
		}
	}
}
