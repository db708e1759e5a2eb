package insight_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"netdelta/insight"
	"netdelta/result"
	"netdelta/stats"
)

// lands is a simulated run of several settings whose truth is known: by network and policy the true log of its latency.
type lands struct {
	policies []string
	logs     map[string]map[string]float64
	builds   int
	buildSD  float64
	seed     uint64
}

func usualLands() lands {
	return lands{
		policies: []string{"", result.PolicyEBPF, result.PolicyIPTables},
		logs: map[string]map[string]float64{
			"host":   {result.PolicyIPTables: math.Log(1.08)},
			"bridge": {"": math.Log(1.2), result.PolicyEBPF: math.Log(1.2), result.PolicyIPTables: math.Log(1.2 * 1.15)},
			"sock":   {"": math.Log(1.4), result.PolicyEBPF: math.Log(1.4), result.PolicyIPTables: math.Log(1.4 * 0.9)},
		},
		builds: 8, buildSD: 0.004, seed: 1,
	}
}

func (l lands) cells() []result.Cell {
	var cells []result.Cell
	for _, policy := range l.policies {
		p := result.Params{Message: 300, Conditions: result.Conditions{Policy: policy}.Plain()}
		add := func(network string, role result.Role) {
			cells = append(cells, result.Cell{
				ID: network + "/" + string(role) + "/" + policy, Network: network, Placement: result.CrossNode, Path: "pod",
				Workload: "tcp-rr", Params: p, Role: role,
			})
		}
		add("host", result.RoleBaseline)
		add("host", result.RoleControl)
		add("bridge", result.RoleCell)
		add("sock", result.RoleCell)
	}
	return cells
}

func (l lands) trials() []result.Trial {
	const rounds = 24
	random := rand.New(rand.NewPCG(l.seed, 9))
	var trials []result.Trial
	for build := range l.builds {
		var weather [rounds]float64 // slow moods of the machine, that all cells of a round share
		for round := range rounds {
			weather[round] = 0.3*float64(round)/rounds + 0.05*random.NormFloat64()
		}
		for _, c := range l.cells() {
			own := l.logs[c.Network][c.Params.Conditions.Policy] + l.buildSD*random.NormFloat64()
			t := result.Trial{Schema: result.Schema, Cell: c.ID, Role: c.Role, Build: build, Started: time.Date(2030, 1, 1, 0, build, 0, 0, time.UTC)}
			for round := range rounds {
				x := baseNS * math.Exp(own+weather[round]+0.02*random.NormFloat64())
				t.Bursts.Round, t.Bursts.Start = append(t.Bursts.Round, round), append(t.Bursts.Start, int64(round)*1e6)
				t.Bursts.Duration, t.Bursts.Disturbed = append(t.Bursts.Duration, 5e6), append(t.Bursts.Disturbed, "")
				t.Bursts.P50, t.Bursts.P90 = append(t.Bursts.P50, x), append(t.Bursts.P90, 1.3*x)
			}
			trials = append(trials, t)
		}
	}
	return trials
}

// headlineEffects are the effects on the headline metric.
func headlineEffects(effects []result.Effect) []result.Effect {
	return slices.DeleteFunc(slices.Clone(effects), func(e result.Effect) bool { return !e.Headline })
}

func TestEffectsAreOfEachNetworkAgainstTheFirstLevel(t *testing.T) {
	l := usualLands()
	effects := insight.Effects(l.cells(), l.trials(), insight.Options{})
	var got []string
	for _, e := range effects {
		got = append(got, e.Network+" "+e.Metric+" "+e.Factor+": "+e.From+" > "+e.To)
	}
	want := []string{
		"host p50 policy: none > ebpf:10", "host p90 policy: none > ebpf:10",
		"bridge p50 policy: none > ebpf:10", "bridge p90 policy: none > ebpf:10",
		"sock p50 policy: none > ebpf:10", "sock p90 policy: none > ebpf:10",
		"host p50 policy: none > iptables:10", "host p90 policy: none > iptables:10",
		"bridge p50 policy: none > iptables:10", "bridge p90 policy: none > iptables:10",
		"sock p50 policy: none > iptables:10", "sock p90 policy: none > iptables:10",
	}
	if !slices.Equal(got, want) {
		t.Fatalf("got\n%q\nwant\n%q", got, want)
	}
	verdicts := map[string]string{
		"host": "slower", "bridge": "slower", "sock": "faster",
	}
	for _, e := range headlineEffects(effects) {
		want := "same"
		if e.To == "iptables:10" {
			want = verdicts[e.Network]
		}
		if e.Verdict != want || e.Blocks != l.builds || e.RatioLow == nil {
			t.Errorf("%s to %s is %.4f, %s over %d builds; want %s", e.Network, e.To, e.Ratio, e.Verdict, e.Blocks, want)
		}
		truth := math.Exp(l.logs[e.Network][cutRules(e.To)] - l.logs[e.Network][""])
		near(t, e.Network+" at "+e.To, e.Ratio, truth, 0.01)
		if want := e.FromValue * (e.Ratio - 1); math.Abs(e.Difference-want) > 0.003*e.FromValue {
			t.Errorf("the difference of %s at %s is %g, not about %g", e.Network, e.To, e.Difference, want)
		}
	}
}

// cutRules is a policy without the number of its rules.
func cutRules(level string) string {
	if i := slices.Index([]byte(level), ':'); i >= 0 {
		return level[:i]
	}
	return level
}

// TestEffectsHoldTheTruth: the 95% intervals of effects hold the truth in 93% to 97% of simulated runs, and where there is no
// effect at most one run in twenty claims any.
func TestEffectsHoldTheTruth(t *testing.T) {
	t.Parallel()
	held, all, falseRuns := 0, 0, 0
	const runs = 300
	for seed := range uint64(runs) {
		l := usualLands()
		l.seed = seed + 1
		claimed := false
		for _, e := range headlineEffects(insight.Effects(l.cells(), l.trials(), insight.Options{HeadlinesOnly: true, Margin: 1e-9})) {
			truth := math.Exp(l.logs[e.Network][cutRules(e.To)] - l.logs[e.Network][""])
			if all++; *e.RatioLow <= truth && truth <= *e.RatioHigh {
				held++
			}
			if truth == 1 && (e.Verdict == string(stats.Slower) || e.Verdict == string(stats.Faster)) {
				claimed = true
			}
		}
		if claimed {
			falseRuns++
		}
	}
	if share := float64(held) / float64(all); share < 0.93 || share > 0.97 {
		t.Errorf("the intervals hold the truth in %.1f%% of cases", 100*share)
	}
	if falseRuns > runs/20 {
		t.Errorf("%d of %d runs claim an effect that is none", falseRuns, runs)
	}
	t.Logf("%d of %d intervals hold the truth; %d of %d runs claim what is not there", held, all, falseRuns, runs)
}

// Two factors: each effect is taken with the other one at rest, and at each of its levels.
func TestEffectsOfTwoFactors(t *testing.T) {
	var cells []result.Cell
	for _, c := range []result.Conditions{{}, {LinkLoss: 0.01}, {Policy: "ebpf"}, {Policy: "ebpf", LinkLoss: 0.01}} {
		for _, role := range []result.Role{result.RoleBaseline, result.RoleControl} {
			p := result.Params{Conditions: c.Plain()}
			cells = append(cells, result.Cell{ID: string(role) + c.Policy + p.Level("link.loss"), Network: "host", Workload: "tcp-rr", Params: p, Role: role})
		}
	}
	got := insight.Steps(cells)
	want := []string{
		"link.loss: baseline0% > baseline1%", "link.loss: baselineebpf0% > baselineebpf1%",
		"policy: baseline0% > baselineebpf0%", "policy: baseline1% > baselineebpf1%",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

// What was not measured at both levels has no effect, and a run without factors has none.
func TestNoEffects(t *testing.T) {
	l := usualLands()
	cells, trials := l.cells(), l.trials()
	for i := range trials {
		if trials[i].Cell == "bridge/cell/" {
			trials[i].Failed = "it broke"
		}
	}
	for _, e := range insight.Effects(cells, trials, insight.Options{}) {
		if e.Network == "bridge" {
			t.Errorf("%+v", e)
		}
	}
	w := usual()
	if effects := insight.Effects(w.cells(), w.trials(t), insight.Options{}); len(effects) != 0 {
		t.Errorf("%d effects of one setting", len(effects))
	}
	cells = slices.DeleteFunc(l.cells(), func(c result.Cell) bool { return c.Params.Conditions.Policy == "" && c.Role != result.RoleCell })
	for _, e := range insight.Effects(cells, l.trials(), insight.Options{}) {
		if e.From == "none" {
			t.Errorf("held against a setting without a baseline: %+v", e)
		}
	}
}

// A cell whose delta is known goes on being measured as long as an effect that rests on it is not, on either side of it.
func TestCellsWaitForTheirEffects(t *testing.T) {
	l := usualLands()
	l.policies = []string{"", result.PolicyIPTables}
	// The deltas are far from nothing, the effect is about the margin.
	l.logs = map[string]map[string]float64{
		"host": {}, "bridge": {"": math.Log(1.5), result.PolicyIPTables: math.Log(1.53)}, "sock": {"": math.Log(1.5), result.PolicyIPTables: math.Log(1.8)},
	}
	l.buildSD, l.builds = 0.02, 14
	o := insight.Options{Sequential: true}
	settled := insight.Settled(l.cells(), l.trials(), o)
	if settled["bridge/cell/"] || settled["bridge/cell/iptables"] {
		t.Errorf("settled although the effect is open: %v", settled)
	}
	if !settled["sock/cell/"] || !settled["sock/cell/iptables"] {
		t.Errorf("not settled although all is known: %v", settled)
	}
	alone := l
	alone.policies = []string{""}
	if settled := insight.Settled(alone.cells(), alone.trials(), o); !settled["bridge/cell/"] {
		t.Errorf("the delta by itself is not settled either: %v", settled)
	}
}

// A run of the baseline alone under several conditions ends when the effects are known; without conditions, when its time is up.
func TestBaselineAloneWaitsForItsEffects(t *testing.T) {
	l := usualLands()
	l.builds = 14
	alone := func(l lands) map[string]bool {
		cells := slices.DeleteFunc(l.cells(), func(c result.Cell) bool { return c.Role == result.RoleCell })
		return insight.Settled(cells, l.trials(), insight.Options{Sequential: true})
	}
	got := alone(l)
	if len(got) != 3 || !got["host/twin/"] || !got["host/twin/ebpf"] || !got["host/twin/iptables"] {
		t.Errorf("all is known, and settled is %v", got)
	}
	l.logs["host"][result.PolicyIPTables], l.buildSD = math.Log(1.02), 0.02
	if got := alone(l); got["host/twin/iptables"] || got["host/twin/"] {
		t.Errorf("an effect is open, and settled is %v", got)
	}
	l.policies = []string{""}
	if got := alone(l); len(got) != 0 {
		t.Errorf("settled although there is nothing to know: %v", got)
	}
}
