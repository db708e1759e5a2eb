package insight_test

import (
	"math"
	"strings"
	"testing"

	"netdelta/insight"
	"netdelta/report/words"
	"netdelta/result"
)

// inTime is a run of the usual world by the clock, with networks at these ratios.
func inTime(tb testing.TB, ratios map[string]float64) insight.Measured {
	tb.Helper()
	w := usual()
	w.networks, w.logs = nil, map[string]float64{}
	for _, n := range []string{"bridge", "macvlan", "vxlan", "routed"} {
		if r := ratios[n]; r != 0 {
			w.networks = append(w.networks, n)
			w.logs[n] = math.Log(r)
		}
	}
	m := w.measured(tb, 1)
	words.NewJudge(nil).ConcludeFrom(&m.Run, m.Trials)
	return m
}

func TestExactBesideNative(t *testing.T) {
	exact := counted(map[string][]float64{"bridge": {1.1, 1.1, 1.1}, "macvlan": {1.02, 1.02, 1.02}, "vxlan": {1.3, 1.3, 1.3}, "routed": {1.2, 1.2, 1.2}})
	words.NewJudge(nil).ConcludeFrom(&exact.Run, exact.Trials)
	b, err := insight.CompareExact(inTime(t, map[string]float64{"bridge": 1.5, "macvlan": 1.1, "vxlan": 3, "routed": 1.25}).Run, exact.Run)
	if err != nil {
		t.Fatal(err)
	}
	if len(b.Settings) != 1 || len(b.Settings[0].Networks) != 4 || b.Run != "counted" {
		t.Fatalf("%+v", b)
	}
	// By time macvlan, routed, bridge, vxlan; by instructions macvlan, bridge, routed, vxlan: one pair of neighbours changes places.
	if s := b.Settings[0]; s.Correlation == nil || math.Abs(*s.Correlation-0.8) > 1e-9 || math.Abs(*b.Correlation-0.8) > 1e-9 {
		t.Errorf("correlation %v", s.Correlation)
	}
	for i, want := range []struct {
		network       string
		native, exact float64
	}{{"macvlan", 1, 1}, {"bridge", 3, 2}, {"routed", 2, 3}, {"vxlan", 4, 4}} {
		n := b.Settings[0].Networks[i]
		if n.Network != want.network || n.NativeRank != want.native || n.ExactRank != want.exact {
			t.Errorf("place %d: %+v, want %+v", i+1, n, want)
		}
	}
	bridge := b.Settings[0].Networks[1]
	if math.Abs(bridge.Request-1650) > 2 || math.Abs(bridge.Response-1350) > 2 || bridge.ExactVerdict != "slower" {
		t.Errorf("%+v", bridge)
	}
	if says := words.ExactComparison(b); !strings.Contains(says, "0.80") {
		t.Error(says)
	}
}

func TestExactBesideWhatCantBe(t *testing.T) {
	exact := counted(map[string][]float64{"bridge": {1.1, 1.1, 1.1}})
	words.NewJudge(nil).ConcludeFrom(&exact.Run, exact.Trials)
	native := inTime(t, map[string]float64{"vxlan": 1.3}).Run
	for name, c := range map[string]struct{ native, exact result.Run }{
		"no exact run": {native, native}, "no native run": {exact.Run, exact.Run}, "nothing in common": {native, exact.Run},
	} {
		if _, err := insight.CompareExact(c.native, c.exact); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	b, err := insight.CompareExact(inTime(t, map[string]float64{"bridge": 1.3}).Run, exact.Run)
	if err != nil || b.Correlation != nil || !strings.Contains(words.ExactComparison(b), "Too few") {
		t.Errorf("one network: %+v, %v", b, err)
	}
}

// A run says plainly what it counts and what not.
func TestExactRunSaysWhatItCounts(t *testing.T) {
	run := counted(nil).Run
	for _, part := range []string{"instructions", "2 ns", "caches", "network cards", "in parallel", "1, 2, 3"} {
		if !strings.Contains(words.ExactSays(run), part) {
			t.Errorf("it does not speak of %q: %s", part, words.ExactSays(run))
		}
	}
	run.Exact = nil
	if got := words.ExactSays(run); got != "" {
		t.Error(got)
	}
}
