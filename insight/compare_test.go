package insight_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"netdelta/insight"
	"netdelta/report/words"
	"netdelta/result"
	"netdelta/stats"
	"netdelta/stats/simulate"
	"netdelta/unit"
)

// measured is a world's run on a machine that is so many times as slow.
func (w world) measured(tb testing.TB, slowness float64) insight.Measured {
	tb.Helper()
	trials := w.trials(tb)
	for _, t := range trials {
		for _, column := range [][]float64{t.Bursts.P50, t.Bursts.P90, t.Bursts.Min, t.Bursts.Mean} {
			for i := range column {
				column[i] *= slowness
			}
		}
	}
	return insight.Measured{
		Run: result.Run{
			Run: fmt.Sprintf("run-%d", w.seed), Study: "latency", Seed: w.seed, Confidence: 0.95, Margin: 0.02, Ended: "builds", Cells: w.cells(),
		},
		Trials: insight.Summarize(result.List(trials)),
	}
}

// changed is the usual world at another time, with some ratios other than they were.
func changed(seed uint64, ratios map[string]float64) world {
	w := usual()
	w.seed = seed
	for network, ratio := range ratios {
		w.logs[network] += math.Log(ratio)
	}
	return w
}

// changeOf is the change of a network in a metric.
func changeOf(t *testing.T, c result.Comparison, network, metric string) result.Change {
	t.Helper()
	for _, change := range c.Changes {
		if change.Network == network && change.Metric == metric {
			return change
		}
	}
	t.Fatalf("no change of %s in %s among %d", network, metric, len(c.Changes))
	return result.Change{}
}

// Two machines, of which one is two and a half times as slow: what the networks cost is compared, not how long they take.
func TestCompareFindsWhatChanged(t *testing.T) {
	before := usual().measured(t, 1)
	after := changed(2, map[string]float64{"vxlan": 1.06, "bridge": 0.93}).measured(t, 2.5)
	after.Run.Environment.CPU.Model = "slow"
	c := words.Judge{}.Compare(before, after, insight.Comparing{})
	for network, want := range map[string]struct {
		verdict stats.Verdict
		ratio   float64
	}{"vxlan": {stats.Regressed, 1.06}, "bridge": {stats.Improved, 0.93}, "macvlan": {stats.Same, 1}} {
		got := changeOf(t, c, network, insight.MetricP50)
		near(t, network, got.Change, want.ratio, 0.01)
		if got.Verdict != string(want.verdict) || !got.Headline || *got.ChangeLow > got.Change || *got.ChangeHigh < got.Change || *got.P > *got.PAdjusted {
			t.Errorf("%s: %+v", network, got)
		}
		if got.Old.Blocks != 8 || got.New.Blocks != 8 || got.Old.Ratio == 0 {
			t.Errorf("%s: %+v", network, got)
		}
	}
	if c.Verdict != string(stats.Regressed) || !strings.HasPrefix(c.Says, "REGRESSION: 1 of 3 deltas became worse by more than 2%: vxlan p50 +") {
		t.Errorf("%s: %s", c.Verdict, c.Says)
	}
	var p, adjusted []float64
	for _, change := range c.Changes {
		p, adjusted = append(p, *change.P), append(adjusted, *change.PAdjusted)
	}
	if diff := cmp.Diff(stats.Holm(p), adjusted); diff != "" || slices.Equal(p, adjusted) {
		t.Errorf("p %v is corrected to %v:\n%s", p, adjusted, diff)
	}
	if len(c.Changes) != 3 || len(c.Unpaired) != 0 || len(c.Baselines) != 1 {
		t.Errorf("%d changes, %d unpaired, %d baselines", len(c.Changes), len(c.Unpaired), len(c.Baselines))
	}
	near(t, "the baseline's change", c.Baselines[0].New/c.Baselines[0].Old, 2.5, 0.02)
}

// A comparison is turned about by turning its runs about.
func TestCompareIsSymmetric(t *testing.T) {
	a, b := usual().measured(t, 1), changed(2, map[string]float64{"vxlan": 1.06}).measured(t, 2.5)
	there, back := words.Judge{}.Compare(a, b, insight.Comparing{}), words.Judge{}.Compare(b, a, insight.Comparing{})
	for _, network := range usual().networks {
		x, y := changeOf(t, there, network, insight.MetricP50), changeOf(t, back, network, insight.MetricP50)
		near(t, network, x.Change*y.Change, 1, 1e-12)
		near(t, network, *x.ChangeLow**y.ChangeHigh, 1, 1e-12)
	}
	if back.Verdict != string(stats.Improved) || !strings.HasPrefix(back.Says, "No regression was found in 3 deltas; 1 improved by more than 2%: vxlan") {
		t.Errorf("%s: %s", back.Verdict, back.Says)
	}
}

// More throughput is better.
func TestCompareThroughput(t *testing.T) {
	w, slower := usual(), changed(2, map[string]float64{"vxlan": 1.08})
	w.stream, slower.stream = true, true
	c := words.Judge{}.Compare(w.measured(t, 1), slower.measured(t, 1), insight.Comparing{})
	got := changeOf(t, c, "vxlan", insight.MetricThroughput)
	near(t, "throughput", got.Change, 1/1.08, 0.01)
	if got.Verdict != string(stats.Regressed) || got.Better != "higher" {
		t.Errorf("%+v", got)
	}
	if known, side := insight.Moved(got); !known || side != 1 {
		t.Errorf("it became worse: %v, %d", known, side)
	}
}

func TestCompareChoosesMetrics(t *testing.T) {
	before, after := usual().measured(t, 1), changed(2, map[string]float64{"vxlan": 1.06}).measured(t, 1)
	headlines := words.Judge{}.Compare(before, after, insight.Comparing{})
	all := words.Judge{}.Compare(before, after, insight.Comparing{All: true})
	one := words.Judge{}.Compare(before, after, insight.Comparing{Metric: "p90"})
	oneOfAll := words.Judge{}.Compare(before, after, insight.Comparing{Metric: "p90", All: true})
	none := words.Judge{}.Compare(before, after, insight.Comparing{Metric: insight.MetricThroughput})
	if len(headlines.Changes) != 3 || len(one.Changes) != 3 || len(all.Changes) != 12 || len(oneOfAll.Changes) != 12 || len(none.Changes) != 0 {
		t.Errorf("%d, %d, %d, %d, %d changes", len(headlines.Changes), len(one.Changes), len(all.Changes), len(oneOfAll.Changes), len(none.Changes))
	}
	for _, c := range slices.Concat(one.Changes, oneOfAll.Changes) {
		if c.Headline != (c.Metric == "p90") {
			t.Errorf("%s of %s is judged: %v", c.Metric, c.Network, c.Headline)
		}
	}
	// Metrics other than the headline do not decide.
	if diff := cmp.Diff(headlines.Says, all.Says); diff != "" {
		t.Error(diff)
	}
	for i, c := range insight.Judged(all) {
		if diff := cmp.Diff(headlines.Changes[i], c); diff != "" {
			t.Errorf("the others weaken the headlines:\n%s", diff)
		}
	}
	if none.Verdict != insight.NothingCompared || none.Says != "Nothing can be compared: the runs have no delta in common." {
		t.Errorf("%s: %s", none.Verdict, none.Says)
	}
	if groups := insight.Groups(all); len(groups) != 4 || groups[0].Baseline == nil || groups[1].Baseline != nil || words.Context(groups[1], all, "→") != "" {
		t.Errorf("%+v", groups)
	}
}

func TestCompareMargin(t *testing.T) {
	before, after := usual().measured(t, 1), changed(2, map[string]float64{"vxlan": 1.06}).measured(t, 1)
	for margin, want := range map[float64]stats.Verdict{0: stats.Regressed, 0.01: stats.Regressed, 0.10: stats.Same, 0.06: stats.Unresolved} {
		c := words.Judge{}.Compare(before, after, insight.Comparing{Margin: margin})
		if got := changeOf(t, c, "vxlan", insight.MetricP50); got.Verdict != string(want) {
			t.Errorf("margin %v: %+v", margin, got)
		}
	}
	// Without a margin of its own the comparison takes the wider one.
	after.Run.Margin = 0.10
	if c := (words.Judge{}).Compare(before, after, insight.Comparing{}); c.Margin != 0.10 || c.Verdict != string(stats.Same) ||
		!strings.HasPrefix(c.Says, "Nothing changed: all 3 deltas are the same to within 10%. A change of 1") {
		t.Errorf("margin %v: %s", c.Margin, c.Says)
	}
}

func TestCompareTooFewBuilds(t *testing.T) {
	few := usual()
	few.builds = 2
	c := words.Judge{}.Compare(few.measured(t, 1), changed(2, map[string]float64{"vxlan": 2}).measured(t, 1), insight.Comparing{})
	if c.Verdict != insight.NothingCompared || c.Says != "Nothing can be compared: a change takes 3 builds in each run, and the old run has 2, the new one 8." {
		t.Errorf("%s: %s", c.Verdict, c.Says)
	}
	got := changeOf(t, c, "vxlan", insight.MetricP50)
	if got.ChangeLow != nil || got.P != nil || got.PAdjusted != nil || got.Need != 3 || got.Verdict != string(stats.Unresolved) {
		t.Errorf("%+v", got)
	}
	near(t, "vxlan", got.Change, 2, 0.02)
}

// The noise floor of either run holds for the comparison: a change that a run may make of itself is not called one.
func TestCompareHeedsTheNoiseFloor(t *testing.T) {
	before, after := usual().measured(t, 1), changed(2, map[string]float64{"vxlan": 1.25}).measured(t, 1)
	for trial := range result.Each(after.Trials) {
		if trial.Role == result.RoleControl {
			for row := range trial.Bursts.P50 {
				trial.Bursts.P50[row] *= 1.30
			}
		}
	}
	after.Trials = insight.Summarize(after.Trials.Trials)
	c := words.Judge{}.Compare(before, after, insight.Comparing{})
	if got := changeOf(t, c, "vxlan", insight.MetricP50); got.Verdict == string(stats.Regressed) || got.Floor == nil || *got.Floor < 0.25 ||
		!strings.Contains(strings.Join(got.Warnings, ""), "no larger than what the null checks leave possible") {
		t.Errorf("%+v", got)
	}
	// A run without an A/A control has no floor to give.
	for _, m := range []*insight.Measured{&before, &after} {
		m.Run.Cells = slices.DeleteFunc(m.Run.Cells, func(c result.Cell) bool { return c.Role == result.RoleControl })
	}
	if got := changeOf(t, words.Judge{}.Compare(before, after, insight.Comparing{}), "vxlan", insight.MetricP50); got.Floor != nil {
		t.Errorf("a floor of %v", *got.Floor)
	}
}

// A run that decided by what it saw when to stop widens the interval, whichever of the two it was.
func TestCompareAllowsForLooking(t *testing.T) {
	before, after := usual().measured(t, 1), changed(2, nil).measured(t, 1)
	width := func() float64 {
		c := changeOf(t, words.Judge{}.Compare(before, after, insight.Comparing{}), "vxlan", insight.MetricP50)
		return *c.ChangeHigh - *c.ChangeLow
	}
	fixed := width()
	after.Run.Adaptive = true
	if adaptive := width(); adaptive < 1.05*fixed {
		t.Errorf("after looks the interval is %v wide, without %v", adaptive, fixed)
	}
}

func TestCompareUnpaired(t *testing.T) {
	before, after := usual().measured(t, 1), changed(2, nil).measured(t, 1)
	cell := func(m *insight.Measured, network string) *result.Cell {
		i := slices.IndexFunc(m.Run.Cells, func(c result.Cell) bool { return c.Network == network && c.Role == result.RoleCell })
		return &m.Run.Cells[i]
	}
	cell(&after, "bridge").Unsupported = "needs bridges"
	cell(&after, "macvlan").Skipped = "the time budget"
	cell(&before, "vxlan").Network = "geneve" // each run has one that the other does not know
	c := words.Judge{}.Compare(before, after, insight.Comparing{})
	got := map[string]string{}
	for _, u := range c.Unpaired {
		got[u.In+" "+u.Network] = u.Why
	}
	if diff := cmp.Diff(map[string]string{
		"old bridge": "unsupported there: needs bridges", "old macvlan": "left out there: the time budget",
		"old geneve": "not part of that run", "new vxlan": "not part of that run",
	}, got); diff != "" {
		t.Error(diff)
	}
	if len(c.Changes) != 0 || c.Verdict != insight.NothingCompared {
		t.Errorf("%d changes: %s", len(c.Changes), c.Verdict)
	}

	// Against another baseline it is another delta.
	other := changed(3, nil).measured(t, 1)
	for i := range other.Run.Cells {
		if other.Run.Cells[i].Network == "host" {
			other.Run.Cells[i].Network = "routed"
		}
	}
	c = words.Judge{}.Compare(usual().measured(t, 1), other, insight.Comparing{})
	if len(c.Changes) != 0 || len(c.Unpaired) != 6 || c.Unpaired[0].Why != "compared with routed there" {
		t.Errorf("%d changes, %+v", len(c.Changes), c.Unpaired)
	}
	// A default that is written out is the default.
	written := changed(3, nil).measured(t, 1)
	for i := range written.Run.Cells {
		written.Run.Cells[i].Path, written.Run.Cells[i].Params.Family, written.Run.Cells[i].Params.CPU = "", result.IPv4, "same"
	}
	if c := (words.Judge{}).Compare(usual().measured(t, 1), written, insight.Comparing{}); len(c.Changes) != 3 {
		t.Errorf("%d changes, %+v", len(c.Changes), c.Unpaired)
	}
}

// Loss has no ratio: its change is a difference of shares.
func TestCompareLoss(t *testing.T) {
	lossy := func(seed uint64, share float64) insight.Measured {
		m := changed(seed, nil).measured(t, 1)
		for trial := range result.Each(m.Trials) {
			trial.Sent = 100_000
			if trial.Cell == "vxlan" {
				trial.Lost = int64(share*100_000) + int64(trial.Build%2)
			}
		}
		m.Trials = insight.Summarize(m.Trials.Trials)
		return m
	}
	c := words.Judge{}.Compare(lossy(1, 0.001), lossy(2, 0.02), insight.Comparing{Metric: insight.MetricLoss})
	got := changeOf(t, c, "vxlan", insight.MetricLoss)
	if got.Change != 0 || got.Verdict != string(stats.Regressed) || got.ShiftLow == nil || *got.ShiftLow > got.Shift {
		t.Errorf("%+v", got)
	}
	near(t, "the shift", got.Shift, 0.019, 0.01)
	if words.Amount(got) != "+1.90 points" {
		t.Errorf("amount %q", words.Amount(got))
	}
	if got := changeOf(t, c, "bridge", insight.MetricLoss); got.Verdict != string(stats.Same) {
		t.Errorf("%+v", got)
	}
}

func TestCompareSaysHowRunsEnded(t *testing.T) {
	before, after := usual().measured(t, 1), changed(2, nil).measured(t, 1)
	before.Run.Ended, after.Run.Ended = "interrupted", "running"
	after.Notes = []string{"trials.jsonl:9: torn"}
	before.Run.Environment.Servers = []result.Server{{Name: "a"}}
	c := words.Judge{}.Compare(before, after, insight.Comparing{})
	if !c.Old.OnNodes || c.New.OnNodes {
		t.Error("servers are nodes, and a lab's are not")
	}
	if len(c.Notes) != 3 || !strings.Contains(c.Notes[0], "old run") || !strings.Contains(c.Notes[0], "interrupted") ||
		!strings.Contains(c.Notes[1], "the new run is still under way or was killed") || c.Notes[2] != "the new run: trials.jsonl:9: torn" {
		t.Errorf("%q", c.Notes)
	}
}

// environments are two that differ in everything.
func environments() (a, b result.Environment) {
	link := func(network, where, name, kind string, mtu int, tso bool) result.Link {
		return result.Link{Network: network, Where: where, Name: name, Kind: kind, MTU: mtu, Offloads: map[string]bool{"tso": tso}}
	}
	a = result.Environment{
		Netdelta: "v1", GoVersion: "go1", Kernel: "6.12", Arch: "x86_64", OS: "Debian", Hostname: "alpha", Memory: 8 * unit.GiB, Clock: "tsc",
		CPU:       result.CPU{Model: "A", Count: 2, Governor: "powersave", Mitigations: "spectre_v1"},
		Servers:   []result.Server{{Name: "a", Mode: "macvlan", ServerCard: result.ServerCard{Card: "bond0", MTU: 1500, Bond: "802.3ad, layer2"}}},
		Sysctls:   map[string]string{"net.ipv4.tcp_congestion_control": "cubic", "net.ipv4.tcp_sack": "1"},
		Versions:  map[string]string{"fio": "3.1"},
		Measuring: []int{1},
		Links: []result.Link{
			link("host", "node0", "eth0", "veth", 1500, true), link("host", "node1", "eth0", "veth", 1500, true),
			link("vxlan", "node0", "vxlan0", "vxlan", 1450, true), link("vxlan", "pod0", "eth0", "veth", 1450, true), link("gre", "node0", "eth0", "veth", 1, true),
		},
	}
	b = result.Environment{
		Netdelta: "v2", GoVersion: "go2", Kernel: "6.18", Arch: "aarch64", OS: "Fedora", Hostname: "beta", Memory: 16 * unit.GiB, Clock: "hpet",
		Virtual: "kvm", CPU: result.CPU{Model: "B", Count: 64, Governor: "performance"},
		Servers:   []result.Server{{Name: "a", Mode: "macvlan", ServerCard: result.ServerCard{Card: "bond0", MTU: 1500, Speed: 50e9, Bond: "802.3ad, layer3+4"}, Further: []result.ServerCard{{Card: "eth2", MTU: 9000}}}},
		Sysctls:   map[string]string{"net.ipv4.tcp_congestion_control": "bbr"},
		Measuring: []int{2, 3},
		Links: []result.Link{
			link("host", "node0", "eth0", "veth", 9000, true), link("host", "node1", "eth0", "veth", 9000, false), link("host", "pod7", "eth3", "veth", 9000, true),
			link("vxlan", "node0", "vxlan0", "geneve", 1450, true), link("vxlan", "pod0", "eth0", "veth", 1450, true), link("vxlan", "pod1", "eth0", "veth", 1450, true),
		},
	}
	return a, b
}

func TestDifferences(t *testing.T) {
	a, b := environments()
	before := result.Run{Study: "latency", Question: "Why?", Testbed: "lab", Margin: 0.02, Confidence: 0.95, Environment: a}
	after := result.Run{Study: "mine", Question: "What?", Testbed: "vm", Margin: 0.05, Confidence: 0.9, Adaptive: true, Environment: b}
	if same := insight.Differences(before, before); len(same) != 0 {
		t.Errorf("a run differs from itself by %+v", same)
	}
	var got []string
	for _, d := range insight.Differences(before, after) {
		got = append(got, strings.TrimSpace(fmt.Sprintf("%s: %s: %s > %s %s", d.Group, d.What, d.Old, d.New, strings.Join(d.Where, ", "))))
	}
	if diff := cmp.Diff([]string{
		"machine: host name: alpha > beta", "machine: processor: A > B", "machine: processors: 2 > 64", "machine: architecture: x86_64 > aarch64",
		"machine: hypervisor:  > kvm", "machine: memory: 8GiB > 16GiB", "machine: frequency governor: powersave > performance",
		"kernel: kernel: 6.12 > 6.18", "kernel: system: Debian > Fedora", "kernel: mitigations: spectre_v1 >", "kernel: clock source: tsc > hpet",
		"program: netdelta: v1 > v2", "program: Go: go1 > go2", "program: fio: 3.1 >",
		"testbed: kind: lab > vm",
		"testbed: cards of the servers: a macvlan:bond0, MTU 1500, 802.3ad, layer2 > a macvlan:bond0, MTU 1500, 50Gbit/s, 802.3ad, layer3+4 and eth2, MTU 9000",
		"testbed: processors measured on: CPU 1 > CPU 2, 3",
		"testbed: MTU:  > 9000 host pod eth", "testbed: MTU: 1500 > 9000 host node eth",
		"testbed: kind of device:  > veth host pod eth", "testbed: kind of device: vxlan > geneve vxlan node vxlan",
		"testbed: offload tso:  > on host pod eth", "testbed: offload tso: on > off and on host node eth",
		"settings: congestion control (net.ipv4.tcp_congestion_control): cubic > bbr", "settings: net.ipv4.tcp_sack: 1 >",
		"study: study: latency > mine", "study: question: Why? > What?", "study: margin: 2% > 5%", "study: confidence: 95% > 90%",
		"study: stops when resolved: no > yes",
	}, got); diff != "" {
		t.Error(diff)
	}
	for _, group := range []struct{ group, words string }{
		{insight.GroupMachine, "another machine"}, {insight.GroupKernel, "another kernel"}, {insight.GroupTestbed, "another testbed"}, {insight.GroupSettings, "other settings"},
		{insight.GroupProgram, ""}, {insight.GroupStudy, ""},
	} {
		if got := words.Elsewhere(result.Comparison{Differences: []result.Difference{{Group: group.group}}}); got != group.words {
			t.Errorf("%s: %q", group.group, got)
		}
	}
	onNodes := result.ComparedRun{OnNodes: true}
	moved := result.Comparison{Old: onNodes, New: onNodes, Differences: []result.Difference{{Group: insight.GroupMachine}}}
	if got := words.Elsewhere(moved); got != "other nodes" {
		t.Errorf("on a cluster: %q", got)
	}
	for says, c := range map[string]result.Comparison{
		"Same nodes and kernel, same testbed and settings.": {Old: onNodes, New: onNodes}, "Same machine and kernel, same testbed and settings.": {},
	} {
		if got := words.Alike(c); got != says {
			t.Errorf("%q, want %q", got, says)
		}
	}
}

// Settings that one of the runs did not record are one difference, not dozens.
func TestSettingsThatWereNotRecorded(t *testing.T) {
	a, b := environments()
	b.Sysctls = nil
	settings := slices.DeleteFunc(insight.Differences(result.Run{Environment: a}, result.Run{Environment: b}), func(d result.Difference) bool { return d.Group != insight.GroupSettings })
	want := []result.Difference{{Group: insight.GroupSettings, What: "settings of the kernel", Old: "2 recorded"}}
	if diff := cmp.Diff(want, settings); diff != "" {
		t.Error(diff)
	}
}

// A machine whose kernel keeps a little more memory for itself is the same machine.
func TestMemoryIsRounded(t *testing.T) {
	run := func(memory unit.Bytes) result.Run { return result.Run{Environment: result.Environment{Memory: memory}} }
	if d := insight.Differences(run(8*unit.GiB), run(8*unit.GiB-100*unit.MiB)); len(d) != 0 {
		t.Errorf("%+v", d)
	}
}

// TestComparisonsClaimLittle compares runs of two machines between which nothing has changed, from the trials on: at most one in
// twenty may claim that anything did, though there is no margin to hide in.
func TestComparisonsClaimLittle(t *testing.T) {
	const trials = 100
	claims, held, intervals := 0, 0, 0
	for _, c := range simulate.Parallel(trials, func(i int) result.Comparison {
		w := usual()
		w.rounds, w.buildSD = 12, 0.004
		before, after := w, w
		before.seed, after.seed, after.buildSD = uint64(2*i+1), uint64(2*i+2), 0.009
		return words.Judge{}.Compare(before.measured(t, 1), after.measured(t, 3), insight.Comparing{Margin: 1e-6})
	}) {
		for _, change := range c.Changes {
			intervals++
			if *change.ChangeLow <= 1 && *change.ChangeHigh >= 1 {
				held++
			}
		}
		if v := stats.Verdict(c.Verdict); v == stats.Regressed || v == stats.Improved {
			claims++
		}
	}
	t.Logf("%d of %d comparisons claim a change; %d of %d intervals hold that there is none", claims, trials, held, intervals)
	if claims > trials/20 || float64(held) < 0.91*float64(intervals) {
		t.Errorf("%d of %d comparisons claim a change; %d of %d intervals hold that there is none", claims, trials, held, intervals)
	}
}

// Two runs on one cluster draw new names for their pods and the pods' devices: that is no difference.
func TestDrawnNamesOfPods(t *testing.T) {
	run := func(pod, device string) result.Run {
		return result.Run{Environment: result.Environment{Links: []result.Link{
			{Network: "pod", Where: "pod " + pod, Name: "eth0", Kind: "device", MTU: 1450}, {Network: "host", Where: "node w1", Name: device, Kind: "device", MTU: 1450},
			{Network: "host", Where: "node w1", Name: "cni0", Kind: "device", MTU: 1450},
		}}}
	}
	before, after := run("netdelta-7e79dc64-t1-p0", "veth264661d"), run("netdelta-1c9981f3-t2-p0", "veth6186c02a")
	if got := insight.Differences(before, after); len(got) != 0 {
		t.Errorf("two runs alike differ in %+v", got)
	}
	after.Environment.Links[0].MTU = 1500
	if got := insight.Differences(before, after); len(got) != 1 || got[0].What != "MTU" || len(got[0].Where) != 1 {
		t.Errorf("another MTU of pods is %+v", got)
	}
}
