// Package reporttest makes runs that were never measured, for the tests of what reads runs: their truth is known, and the same
// World gives the same run.
package reporttest

import (
	"math"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"netdelta/insight"
	"netdelta/internal/require"
	"netdelta/report/words"
	"netdelta/result"
	"netdelta/unit"
)

// World is what a run finds. Take Usual and change it.
type World struct {
	// Name names the run, and Seed all that is random in it.
	Name string
	Seed uint64
	// Builds and Rounds are how much was measured.
	Builds, Rounds int
	// Base is the baseline's latency in nanoseconds.
	Base float64
	// Networks are measured with the baseline, in this order; Costs are their true ratios to it, 1 if not given.
	Networks []string
	Costs    map[string]float64
	// Scatter is how much builds differ, as a standard deviation of the logarithm.
	Scatter float64
	// Conditions are those that everything is measured under, one after the other; none is a run without factors. Slower is
	// what all after the first do to a network, as a ratio, 1 if not given.
	Conditions []result.Conditions
	Slower     map[string]float64
	// Datagrams makes the workload one that loses some.
	Datagrams   bool
	Environment result.Environment
}

// Usual is a world of a bridge that costs 12% and a VXLAN that costs 31%.
func Usual() World {
	return World{
		Name: "latency-20300102-030405", Seed: 1, Builds: 8, Rounds: 6, Base: 20_000, Networks: []string{"bridge", "vxlan"},
		Costs: map[string]float64{"bridge": 1.12, "vxlan": 1.31}, Scatter: 0.002,
		Environment: result.Environment{
			Netdelta: "v1.2.3", GoVersion: "go1.26.8", Kernel: "6.12.1", Arch: "x86_64", OS: "Debian GNU/Linux 12 (bookworm)", Hostname: "alpha",
			CPU: result.CPU{Model: "Example CPU @ 2.00GHz", Count: 2}, Memory: 8 * unit.GiB, Clock: "tsc",
			Sysctls:   map[string]string{"net.ipv4.tcp_congestion_control": "cubic", "net.ipv4.tcp_sack": "1"},
			Measuring: []int{1}, Controlling: []int{0},
		},
	}
}

// Guarded is the usual world without a policy and under one of a thousand rules, which costs the bridge 8% and VXLAN nothing.
func Guarded() World {
	w := Usual()
	w.Name, w.Conditions = "policy-20300102-030405", []result.Conditions{{}, {Policy: result.PolicyNFTables, PolicyRules: 1000}}
	w.Slower = map[string]float64{"host": 1.03, "bridge": 1.08}
	return w
}

// cells are the world's cells: the baseline, its A/A control and the networks.
func (w World) cells() []result.Cell {
	load := "tcp-rr"
	if w.Datagrams {
		load = "udp-rr"
	}
	conditions := w.Conditions
	if len(conditions) == 0 {
		conditions = make([]result.Conditions, 1)
	}
	var cells []result.Cell
	for _, c := range conditions {
		suffix := "/cross-node/" + load + "/300B"
		for _, l := range c.Levels() {
			suffix += "/" + l.String()
		}
		add := func(id, network string, role result.Role) {
			cells = append(cells, result.Cell{
				ID: id + suffix, Network: network, Placement: result.CrossNode, Path: "pod", Workload: load,
				Params: result.Params{Message: 300, Conditions: c.Plain()}, Role: role,
			})
		}
		add("host", "host", result.RoleBaseline)
		add("host+twin", "host", result.RoleControl)
		for _, n := range w.Networks {
			add(n, n, result.RoleCell)
		}
	}
	return cells
}

// Measure is the run with its trials, and all that follows from them.
func (w World) Measure(tb testing.TB) (result.Run, []result.Trial) {
	tb.Helper()
	run := result.Run{
		Schema: result.Schema, Run: w.Name, Study: "latency", Question: "What does each container network add to a round trip?",
		Testbed: "lab", Seed: w.Seed, Confidence: 0.95, Margin: 0.02, Ended: "builds", Environment: w.Environment, Cells: w.cells(),
		Started: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC), Finished: time.Date(2030, 1, 2, 3, 5, 5, 0, time.UTC),
	}
	random := rand.New(rand.NewPCG(w.Seed, 0x7265706f7274))
	var trials []result.Trial
	for build := range w.Builds {
		for _, cell := range run.Cells {
			trials = append(trials, w.trial(tb, random, cell, build))
		}
	}
	words.NewJudge(nil).Conclude(&run, trials)
	return run, trials
}

// trial measures a cell in one build.
func (w World) trial(tb testing.TB, random *rand.Rand, cell result.Cell, build int) result.Trial {
	cost, given := w.Costs[cell.Network]
	if !given {
		cost = 1
	}
	if slower, given := w.Slower[cell.Network]; given && cell.Params.Conditions != w.Conditions[0].Plain() {
		cost *= slower
	}
	typical := w.Base * cost * math.Exp(w.Scatter*random.NormFloat64())
	started := time.Date(2030, 1, 2, 3, 4, 5+build, 0, time.UTC)
	t := result.Trial{
		Schema: result.Schema, Cell: cell.ID, Role: cell.Role, Build: build, Started: started, Finished: started.Add(time.Second),
		ClientCPU: 1, ServerCPU: 1,
	}
	h := result.NewHistogram()
	for round := range w.Rounds {
		p50 := math.Round(typical * math.Exp(0.01*random.NormFloat64()))
		b := &t.Bursts
		b.Round, b.Start, b.Duration = append(b.Round, round), append(b.Start, int64(round)*5_000_000), append(b.Duration, 5_000_000)
		b.Transactions, b.P50, b.P90 = append(b.Transactions, 200), append(b.P50, p50), append(b.P90, 1.2*p50)
		b.Disturbed = append(b.Disturbed, "")
		for range 200 {
			require.NoError(tb, h.RecordValue(int64(p50*(0.9+0.1*random.ExpFloat64()))))
		}
		t.Transactions += 200
	}
	if w.Datagrams {
		t.Sent, t.Lost = t.Transactions+int64(build%2), int64(build%2)
	}
	if last := len(t.Bursts.Disturbed) - 1; build == 1 && last >= 0 {
		t.Bursts.Disturbed[last] = "preempted"
	}
	encoded, err := result.EncodeHistogram(h)
	require.NoError(tb, err)
	t.Histogram = encoded
	return t
}

// Write makes a run folder of a run.
func Write(tb testing.TB, dir string, run result.Run, trials []result.Trial) {
	tb.Helper()
	folder, err := result.Create(dir, []byte("study: latency\n"))
	require.NoError(tb, err)
	for _, t := range trials {
		require.NoError(tb, folder.Append(t))
	}
	for _, err := range []error{folder.WriteEnvironment(run.Environment), folder.WriteResult(run), folder.Close()} {
		require.NoError(tb, err)
	}
}

// Hostile is text that means something to a page, a table, a spreadsheet or a terminal, as a name may have it.
func Hostile() string {
	return "=cmd|'/C calc'!A0 <script>alert(1)</script> `x` | **b** [l](javascript:x) @all \\ # \x1b[31mred\x07 \u202edesrever\u202c, \"q\"\nnew: line"
}

// HostileCluster is a cluster in which everything that can be named is named Hostile: nodes, zones, contexts, versions.
func HostileCluster() *result.Cluster {
	h := Hostile()
	node := result.ClusterNode{
		Name: h, Zone: h, Kernel: h, Arch: h, OS: h, Kubelet: h, Runtime: h, CPU: result.CPU{Model: h, Count: 2, Governor: h, Mitigations: h}, Virtual: h, Clock: h,
	}
	return &result.Cluster{Name: h, Version: h, Network: h, Proxy: h, Nodes: []result.ClusterNode{node}}
}

// Spoiled is a run in which every name and note is Hostile.
func Spoiled(tb testing.TB) (result.Run, []result.Trial) {
	tb.Helper()
	w := Usual()
	w.Networks = []string{Hostile(), "vxlan"}
	run, trials := w.Measure(tb)
	h := Hostile()
	run.Study, run.Question, run.Testbed, run.Run = h, h, h, h
	run.Notes = []string{h, "- item", "1. item", "+ item", "=== heading"}
	run.Claims = []result.Claim{{ID: h, Says: h, Source: h, Published: h, Differs: h, Expect: h, Measured: h, Verdict: "not-tested"}}
	run.Advice = []result.Advice{{Says: h, Why: h}}
	run.Effects = []result.Effect{{
		Cell: h, Reference: h, Network: h, Setting: result.Setting{Workload: h, Placement: result.Placement(h)}, Path: h, Factor: h, From: h, To: h, Metric: "p50", Headline: true,
		Unit: "ns", Better: "lower", FromValue: 20_000, Value: 22_000, Judgement: result.Judgement{Ratio: 1.1, Difference: 2_000, Blocks: 1, Need: 6, Verdict: "unresolved"},
	}}
	run.Checks = append(run.Checks, result.Check{Trial: h, Check: h, Expected: h, Observed: h})
	run.Environment.Kernel, run.Environment.CPU.Model, run.Environment.OS = h, h, h
	run.Environment.Sysctls = map[string]string{h: h}
	run.Environment.Cluster = HostileCluster()
	lost := trials[len(trials)-1]
	lost.Build, lost.Bursts, lost.Failed = lost.Build+1, result.Bursts{}, "burst of "+h+": its pod was stopped: Evicted: "+h
	run.Checks = append(run.Checks, result.Check{Trial: lost.ID(), Check: "completed", Expected: h, Observed: lost.Failed})
	return run, append(trials, lost)
}

// Later is the usual world after a change, on another machine: VXLAN costs 7% more than before, the bridge as much, and
// everything takes twice as long.
func Later() World {
	w := Usual()
	w.Name, w.Seed, w.Base = "latency-20300203-040506", 2, 41_000
	w.Costs = map[string]float64{"bridge": 1.12, "vxlan": 1.31 * 1.07}
	w.Environment.Kernel, w.Environment.Hostname, w.Environment.CPU = "6.18.5", "beta", result.CPU{Model: "Example CPU @ 1.00GHz", Count: 8}
	w.Environment.Sysctls = map[string]string{"net.ipv4.tcp_congestion_control": "bbr", "net.ipv4.tcp_sack": "1"}
	w.Environment.Links = []result.Link{
		{Network: "host", Where: "node0", Name: "eth0", Kind: "veth", MTU: 9000}, {Network: "vxlan", Where: "node0", Name: "eth0", Kind: "veth", MTU: 9000},
		{Network: "bridge", Where: "node0", Name: "eth0", Kind: "veth", MTU: 9000}, {Network: "bridge", Where: "pod0", Name: "eth0", Kind: "veth", MTU: 9000},
	}
	return w
}

// Compared is a comparison of two worlds.
func Compared(tb testing.TB, before, after World, how insight.Comparing) result.Comparison {
	tb.Helper()
	var m [2]insight.Measured
	for i, w := range []World{before, after} {
		run, trials := w.Measure(tb)
		m[i].Run, m[i].Trials = run, insight.Summarize(result.List(trials))
	}
	return words.NewJudge(nil).Compare(m[0], m[1], how).Complete()
}

// Comparisons are some of each kind, by name.
func Comparisons(tb testing.TB) map[string]result.Comparison {
	tb.Helper()
	usual, again, few, lossy, lossier := Usual(), Usual(), Later(), Usual(), Later()
	usual.Environment.Links = []result.Link{
		{Network: "host", Where: "node0", Name: "eth0", Kind: "veth", MTU: 1500}, {Network: "vxlan", Where: "node0", Name: "eth0", Kind: "veth", MTU: 1500},
		{Network: "bridge", Where: "node0", Name: "eth0", Kind: "veth", MTU: 1500}, {Network: "bridge", Where: "pod0", Name: "eth0", Kind: "veth", MTU: 1500},
	}
	again.Name, again.Seed = "latency-20300102-040506", 3
	again.Environment = usual.Environment
	few.Builds, few.Networks = 2, []string{"bridge", "geneve"}
	lossy.Datagrams, lossier.Datagrams, lossier.Scatter = true, true, 0.06
	spoiled, spoiledTrials := Spoiled(tb)
	other, otherTrials := Later().Measure(tb)
	other.Cells[2].Network = Hostile()
	return map[string]result.Comparison{
		"regressed":  Compared(tb, usual, Later(), insight.Comparing{}),
		"same":       Compared(tb, usual, again, insight.Comparing{}),
		"nothing":    Compared(tb, usual, few, insight.Comparing{}),
		"all":        Compared(tb, usual, Later(), insight.Comparing{All: true}),
		"unresolved": Compared(tb, lossy, lossier, insight.Comparing{}),
		"loss":       Compared(tb, lossy, lossier, insight.Comparing{Metric: "loss"}),
		"hostile": words.NewJudge(nil).Compare(insight.Measured{Run: spoiled, Trials: insight.Summarize(result.List(spoiledTrials)), Notes: []string{Hostile()}},
			insight.Measured{Run: other, Trials: insight.Summarize(result.List(otherTrials))}, insight.Comparing{}).Complete(),
	}
}

// Exact is how a run counted that was never counted.
func Exact() *result.Exact {
	return &result.Exact{
		Seeds: []uint64{1, 2, 3}, PerInstruction: 2, Transactions: 400, Emulator: "10.0.2", Processor: "max", Image: "0123456789abcdef",
	}
}

// ExactComparison is an exact run compared with one in time, in one setting with three networks whose names need escaping.
func ExactComparison() *result.ExactComparison {
	rho := 0.5
	return &result.ExactComparison{
		Run: "latency-exact", Exact: *Exact(), Correlation: &rho,
		Settings: []result.ExactSetting{{
			Setting: result.Setting{Workload: "tcp-rr", Params: result.Params{Message: 300}, Placement: result.CrossNode}, Baseline: "host", Metric: "p50", Correlation: &rho,
			Networks: []result.ExactNetwork{
				{Network: "bridge", Native: 1.12, Exact: 1.1955, NativeRank: 1, ExactRank: 1, NativeVerdict: "slower", ExactVerdict: "slower", Request: 3590, Response: 3608},
				{Network: "net|<b>", Native: 1.5, Exact: 1.3704, NativeRank: 3, ExactRank: 2, NativeVerdict: "slower", ExactVerdict: "slower", Request: 6828, Response: 6795},
				{Network: "vxlan", Native: 1.31, Exact: 1.5, NativeRank: 2, ExactRank: 3, NativeVerdict: "slower", ExactVerdict: "slower", Request: -12, Response: 8000},
			},
		}},
	}
}

// Contrasts are contrasts of deltas that nothing was measured for: two networks of a setting differ where their intervals do not meet.
func Contrasts(deltas ...result.Delta) []result.Contrast {
	ends := func(d result.Delta) (low, high float64) {
		a, b := d, d
		a.Difference, b.Difference = *d.DifferenceLow, *d.DifferenceHigh
		if d.Ratio > 0 {
			a.Ratio, b.Ratio = *d.RatioLow, *d.RatioHigh
		}
		return min(insight.Cost(a), insight.Cost(b)), max(insight.Cost(a), insight.Cost(b))
	}
	var list []result.Contrast
	for i, a := range deltas {
		for _, b := range deltas[i+1:] {
			if !a.Headline || !b.Headline || a.Setting != b.Setting || !insight.HasInterval(a) || !insight.HasInterval(b) {
				continue
			}
			c := result.Contrast{Cell: a.Cell, Other: b.Cell}
			aLow, aHigh := ends(a)
			bLow, bHigh := ends(b)
			switch {
			case aHigh < bLow:
				c.Cheaper = a.Cell
			case bHigh < aLow:
				c.Cheaper = b.Cell
			}
			list = append(list, c)
		}
	}
	return list
}

// Full is a file on a full disk: to write fails with ENOSPC.
type Full struct{}

// Write implements io.Writer.
func (Full) Write([]byte) (int, error) { return 0, syscall.ENOSPC }
