package insight_test

import (
	"encoding/json"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"netdelta/insight"
	"netdelta/internal/property"
	"netdelta/report/words"
	"netdelta/result"
)

func TestKnownTruthIsFound(t *testing.T) {
	w := usual()
	deltas, null, checks := deltasOf(w.cells(), w.trials(t), insight.Options{})
	if len(checks) > 0 {
		t.Errorf("checks of a clean run: %+v", checks)
	}
	for network, verdict := range map[string]string{"bridge": "slower", "macvlan": "same", "vxlan": "slower"} {
		d := find(t, deltas, network, "p50")
		truth := math.Exp(w.logs[network])
		near(t, network+" ratio", d.Ratio, truth, 0.01)
		if added := d.BaselineValue * (truth - 1); math.Abs(d.Difference-added) > 0.005*d.BaselineValue || *d.DifferenceLow > added || *d.DifferenceHigh < added {
			t.Errorf("%s adds %g [%g, %g], want %g", network, d.Difference, *d.DifferenceLow, *d.DifferenceHigh, added)
		}
		near(t, network+" value", d.Value, d.BaselineValue*d.Ratio, 0.01)
		if d.Verdict != verdict || !d.Headline || d.Need != 0 || d.Blocks != w.builds || d.Rounds != w.builds*w.rounds {
			t.Errorf("%s: want %s\n%s", network, verdict, show([]result.Delta{d}))
		}
		if d.RatioLow == nil || d.RatioHigh == nil || *d.RatioLow > d.Ratio || *d.RatioHigh < d.Ratio {
			t.Fatalf("%s: no interval about the ratio", network)
		}
		if *d.RatioHigh / *d.RatioLow > 1.02 {
			t.Errorf("%s: interval %g to %g is wide, though drift cancels in pairs", network, *d.RatioLow, *d.RatioHigh)
		}
		if d.Variance == nil || math.Abs(d.Variance.Rounds) > 0.05 || d.Variance.Bursts == 0 {
			t.Errorf("%s: variance %+v", network, d.Variance)
		}
	}
	n := find(t, null, "host", "p50")
	near(t, "null ratio", n.Ratio, 1, 0.01)
	if n.Verdict != "same" || n.Baseline != "host" || n.Cell != "host-twin" {
		t.Errorf("null check: %s", show(null))
	}
	only, nullOnly, _ := insight.Deltas(w.cells(), w.trials(t), insight.Options{HeadlinesOnly: true})
	other := func(d result.Delta) bool { return !d.Headline }
	if diff := cmp.Diff(slices.DeleteFunc(slices.Clone(deltas), other), only); diff != "" || len(nullOnly) != 1 {
		t.Errorf("headlines by themselves differ (-all +only):\n%s", diff)
	}
	metrics := []string{}
	for _, d := range deltas {
		if d.Network == "vxlan" {
			metrics = append(metrics, d.Metric)
		}
	}
	if diff := cmp.Diff([]string{"p50", "p90", "mean", "min"}, metrics); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
}

func TestSettled(t *testing.T) {
	w := usual()
	cells := w.cells()
	cells = append(cells, cells[4], cells[4], cells[4])
	cells[5].ID, cells[5].Network = "late", "late"
	cells[6].ID, cells[6].Skipped = "skipped", "the budget"
	cells[7].ID, cells[7].Unsupported = "unsupported", "needs vxlan"
	settled := insight.Settled(cells, w.trials(t), insight.Options{Sequential: true})
	if diff := cmp.Diff(map[string]bool{"bridge": true, "macvlan": true, "vxlan": true, "late": false}, settled); diff != "" {
		t.Errorf("settled (-want +got):\n%s", diff)
	}
	w.builds = 3
	settled = insight.Settled(w.cells(), w.trials(t), insight.Options{Sequential: true})
	if diff := cmp.Diff(map[string]bool{"bridge": false, "macvlan": false, "vxlan": false}, settled); diff != "" {
		t.Errorf("settled after three builds (-want +got):\n%s", diff)
	}
	w = usual()
	w.buildSD = 0.05 // intervals of about four percent, wider than half the margin
	for cell, known := range insight.Settled(w.cells(), w.trials(t), insight.Options{Sequential: true}) {
		if known && cell != "vxlan" {
			t.Errorf("%s is settled among builds that differ by five percent", cell)
		}
	}
	narrow, _, _ := insight.Deltas(w.cells(), w.trials(t), insight.Options{})
	wide, _, _ := insight.Deltas(w.cells(), w.trials(t), insight.Options{Sequential: true})
	if n, s := find(t, narrow, "vxlan", "p50"), find(t, wide, "vxlan", "p50"); *s.RatioHigh <= *n.RatioHigh || *s.RatioLow >= *n.RatioLow {
		t.Error("a sequential interval is no wider than a fixed one")
	}
}

func TestThroughputThatIsLowerIsSlower(t *testing.T) {
	w := usual()
	w.stream = true
	deltas, _, _ := insight.Deltas(w.cells(), w.trials(t), insight.Options{})
	d := find(t, deltas, "vxlan", "throughput")
	near(t, "ratio", d.Ratio, 1/1.31, 0.01)
	if d.Verdict != "slower" || d.Difference >= 0 || d.Unit != "bit/s" || d.Better != "higher" || !d.Headline {
		t.Errorf("vxlan: %+v", d)
	}
	if *d.DifferenceLow > d.Difference || *d.DifferenceHigh < d.Difference {
		t.Errorf("interval %g to %g of difference %g", *d.DifferenceLow, *d.DifferenceHigh, d.Difference)
	}
}

func TestTailsComeFromHistograms(t *testing.T) {
	w := usual()
	w.samples = 20_000
	deltas, null, _ := insight.Deltas(w.cells(), w.trials(t), insight.Options{})
	for metric, share := range map[string]float64{"p99": 0.03, "p99.9": 0.1} {
		d := find(t, deltas, "vxlan", metric)
		near(t, metric, d.Ratio, 1.31, share)
		if d.Blocks != w.builds || d.Rounds != 0 || d.Headline || d.Variance != nil {
			t.Errorf("%s: %s", metric, show([]result.Delta{d}))
		}
		near(t, metric+" of the A/A control", find(t, null, "host", metric).Ratio, 1, share)
	}
	w.samples = 2000 // enough for p99 and too few for p99.9
	deltas, _, checks := deltasOf(w.cells(), w.trials(t), insight.Options{})
	find(t, deltas, "vxlan", "p99")
	if slices.ContainsFunc(deltas, func(d result.Delta) bool { return d.Metric == "p99.9" }) || len(checks) > 0 {
		t.Errorf("a p99.9 of 2000 transactions, or checks %+v", checks)
	}
}

func TestLossIsADifference(t *testing.T) {
	w := usual()
	w.stream = true
	trials := w.trials(t)
	for i := range trials {
		trials[i].Sent = 100_000
		if trials[i].Cell == "vxlan" {
			trials[i].Lost = int64(5000 + 10*i)
		}
	}
	deltas, _, checks := deltasOf(w.cells(), trials, insight.Options{})
	d := find(t, deltas, "vxlan", "loss")
	near(t, "loss", d.Difference, 0.05, 0.1)
	if d.Verdict != "slower" || d.Ratio != 0 || d.RatioLow != nil || d.DifferenceLow == nil || d.BaselineValue != 0 {
		t.Errorf("vxlan: %+v", d)
	}
	if d := find(t, deltas, "bridge", "loss"); d.Verdict != "same" || d.Difference != 0 {
		t.Errorf("bridge: %+v", d)
	}
	if len(checks) != w.builds || checks[0].Check != insight.CheckLoss {
		t.Errorf("checks %+v, want one for each trial that lost datagrams", checks)
	}
	deltas, _, _ = insight.Deltas(w.cells(), trials, insight.Options{Headlines: map[string]string{"tcp-stream": "loss"}})
	if !find(t, deltas, "vxlan", "loss").Headline || find(t, deltas, "vxlan", "throughput").Headline || deltas[0].Metric != "loss" {
		t.Errorf("the headline is not the one asked for:\n%s", show(deltas))
	}
}

func TestExclusions(t *testing.T) {
	w := usual()
	trials := w.trials(t)
	for i := range trials {
		b := &trials[i].Bursts
		switch trials[i].Cell {
		case "vxlan": // each of these in each build
			b.Disturbed[3] = "steal"
			b.P50[4] = 0
			b.P50[5] = -1
			b.Disturbed[6] = "steal"
		case "host":
			b.Disturbed[6] = "pressure"
			b.Disturbed[7] = "pressure"
		case "host-twin": // two rounds are not there
			b.Round = append(slices.Clone(b.Round[:10]), b.Round[12:]...)
			for _, column := range []*[]float64{&b.P50, &b.P90, &b.Min, &b.Mean, &b.Split} {
				*column = slices.Delete(*column, 10, 12)
			}
			b.Disturbed = slices.Delete(b.Disturbed, 10, 12)
		}
	}
	deltas, _, checks := deltasOf(w.cells(), trials, insight.Options{})
	d := find(t, deltas, "vxlan", "p50")
	want := map[string]int{
		"steal": 2 * w.builds, "not above zero": 2 * w.builds,
		"baseline pressure": w.builds, "baseline has no such round": 2 * w.builds,
	}
	if diff := cmp.Diff(want, d.Excluded); diff != "" {
		t.Errorf("excluded (-want +got):\n%s", diff)
	}
	if d.Rounds != w.builds*(w.rounds-7) || d.Verdict != "slower" || len(d.Warnings) > 0 {
		t.Error(show([]result.Delta{d}))
	}
	near(t, "ratio", d.Ratio, 1.31, 0.01)
	if len(checks) > 0 {
		t.Errorf("checks of few disturbed bursts: %+v", checks)
	}
}

func TestDisturbedTrialIsNamed(t *testing.T) {
	w := usual()
	trials := w.trials(t)
	for row := range trials[4].Bursts.Disturbed {
		trials[4].Bursts.Disturbed[row] = "steal"
	}
	deltas, _, checks := deltasOf(w.cells(), trials, insight.Options{})
	if d := find(t, deltas, "vxlan", "p50"); d.Blocks != w.builds-1 || d.Excluded["steal"] != w.rounds {
		t.Error(show([]result.Delta{d}))
	}
	want := []result.Check{{Trial: "vxlan#0", Check: insight.CheckDisturbed, Expected: "at most 25% of bursts disturbed", Observed: "60 of 60"}}
	if diff := cmp.Diff(want, checks); diff != "" {
		t.Errorf("checks (-want +got):\n%s", diff)
	}
}

func TestMissingBuilds(t *testing.T) {
	w := usual()
	trials := slices.DeleteFunc(w.trials(t), func(t result.Trial) bool { return t.Cell == "vxlan" && t.Build >= 2 })
	deltas, _, _ := insight.Deltas(w.cells(), trials, insight.Options{})
	d := find(t, deltas, "vxlan", "p50")
	if d.RatioLow != nil || d.DifferenceHigh != nil || d.P != nil || d.PAdjusted != nil || d.Verdict != "unresolved" || d.Blocks != 2 || d.Need != 3 {
		t.Errorf("two builds: %s", show([]result.Delta{d}))
	}
	near(t, "ratio", d.Ratio, 1.31, 0.02)
	if d := find(t, deltas, "bridge", "p50"); d.Verdict != "slower" {
		t.Errorf("all builds: %s", show([]result.Delta{d}))
	}
}

// A cell that lost builds is judged by those that it has, and withholds no verdict of the others: the verdicts of a cluster's run of
// six builds and of a database's of seven, one of which lost one.
func TestLostBuildsSilenceNobody(t *testing.T) {
	w := usual()
	w.networks, w.builds = []string{"a", "b", "c", "d"}, 7
	w.logs = map[string]float64{"a": math.Log(1.34), "b": math.Log(1.30), "c": math.Log(3.86), "d": math.Log(1.35)}
	w.buildSD, w.roundSD = 0.02, 0.02
	lost := slices.DeleteFunc(w.trials(t), func(t result.Trial) bool { return t.Cell == "a" && t.Build == 2 || t.Cell == "b" && t.Build >= 4 })
	deltas, _, _ := insight.Deltas(w.cells(), lost, insight.Options{Sequential: true})
	for network, builds := range map[string]int{"a": 6, "b": 4, "c": 7, "d": 7} {
		if d := find(t, deltas, network, "p50"); d.Verdict != "slower" || d.Blocks != builds {
			t.Errorf("%s of %d builds: %s", network, builds, show([]result.Delta{d}))
		}
	}
}

func TestOneBuild(t *testing.T) {
	w := usual()
	w.builds = 1
	deltas, null, _ := insight.Deltas(w.cells(), w.trials(t), insight.Options{})
	if len(deltas) != 3*4 || len(null) != 4 {
		t.Fatalf("%d deltas and %d nulls", len(deltas), len(null))
	}
	for _, d := range append(deltas, null...) {
		if d.RatioLow != nil || d.Verdict != "unresolved" || d.Need != 3 || d.Blocks != 1 {
			t.Error(show([]result.Delta{d}))
		}
	}
}

func TestFailedTrials(t *testing.T) {
	w := usual()
	trials := w.trials(t)
	for i := range trials {
		if trials[i].Build == 0 && trials[i].Cell == "host" || trials[i].Build == 1 && trials[i].Cell == "vxlan" ||
			trials[i].Build == 2 && trials[i].Role != result.RoleCell {
			trials[i].Failed = "the pod's process died"
		}
	}
	deltas, null, checks := deltasOf(w.cells(), trials, insight.Options{})
	d := find(t, deltas, "vxlan", "p50")
	if d.Blocks != w.builds-2 || d.Excluded[insight.TrialFailed] != 1 || d.Excluded[insight.NoBaseline] != 1 {
		t.Error(show([]result.Delta{d}))
	}
	near(t, "ratio", d.Ratio, 1.31, 0.01)
	if n := find(t, null, "host", "p50"); n.Blocks != w.builds-2 {
		t.Error(show(null))
	}
	var named []string
	for _, c := range checks {
		if c.Check != insight.CheckFinished || c.OK || c.Observed != "the pod's process died" {
			t.Errorf("check %+v", c)
		}
		named = append(named, c.Trial)
	}
	if diff := cmp.Diff([]string{"host#0", "vxlan#1", "host#2", "host-twin#2"}, named); diff != "" {
		t.Errorf("failed trials (-want +got):\n%s", diff)
	}
}

func TestNothingToCompare(t *testing.T) {
	w := usual()
	for name, tc := range map[string]struct {
		cells  []result.Cell
		trials []result.Trial
		checks map[string]string // observed, by trial
	}{
		"nothing":           {nil, nil, nil},
		"no trials":         {w.cells(), nil, map[string]string{"host-twin": "no trial", "bridge": "no trial", "macvlan": "no trial", "vxlan": "no trial"}},
		"no baseline":       {w.cells()[2:], w.trials(t), map[string]string{"bridge": "none was measured", "macvlan": "none was measured", "vxlan": "none was measured"}},
		"only the baseline": {w.cells()[:1], w.trials(t), nil},
		"baseline never measured": {
			w.cells()[:3], slices.DeleteFunc(w.trials(t), func(t result.Trial) bool { return t.Role != result.RoleCell }),
			map[string]string{"host-twin": "no trial", "bridge": "no baseline: 8"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			deltas, null, checks := deltasOf(tc.cells, tc.trials, insight.Options{})
			if len(deltas) > 0 || len(null) > 0 {
				t.Errorf("deltas:\n%s%s", show(deltas), show(null))
			}
			got := map[string]string{}
			for _, c := range checks {
				got[c.Trial] = c.Observed
			}
			if diff := cmp.Diff(tc.checks, got); diff != "" && len(got)+len(tc.checks) > 0 {
				t.Errorf("checks (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCellsThatWereNotToBeMeasured(t *testing.T) {
	w := usual()
	cells := w.cells()
	cells[2].Unsupported = "needs ipvlan"
	cells[3].Skipped = "the budget"
	deltas, _, checks := deltasOf(cells, w.trials(t), insight.Options{})
	for _, d := range deltas {
		if d.Network != "vxlan" {
			t.Errorf("a delta of %s", d.Network)
		}
	}
	if len(checks) > 0 {
		t.Errorf("checks %+v", checks)
	}
}

// TestResume holds that the same trial twice in the journal adds nothing, and that a build which was done again after a
// kill is paired within itself.
func TestResume(t *testing.T) {
	w := usual()
	trials := w.trials(t)
	want, _, _ := insight.Deltas(w.cells(), trials, insight.Options{})
	twice := append(slices.Clone(trials), trials[3], trials[9])
	got, _, _ := insight.Deltas(w.cells(), twice, insight.Options{})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("a duplicate changed the deltas (-want +got):\n%s", diff)
	}
	// The last build was cut off after its baseline and bridge, then done again on a machine twice as slow.
	cells := len(w.cells())
	cut := slices.Clone(trials[:len(trials)-cells+3])
	for _, trial := range trials[len(trials)-cells:] {
		trial.Started = trial.Started.Add(1e12)
		trial.Bursts.P50 = slices.Clone(trial.Bursts.P50)
		for i := range trial.Bursts.P50 {
			trial.Bursts.P50[i] *= 2
		}
		cut = append(cut, trial)
	}
	got, _, _ = insight.Deltas(w.cells(), cut, insight.Options{})
	for network, builds := range map[string]int{"bridge": w.builds + 1, "vxlan": w.builds} {
		d := find(t, got, network, "p50")
		near(t, network, d.Ratio, math.Exp(w.logs[network]), 0.01)
		if d.Blocks != builds {
			t.Errorf("%s rests on %d builds, want %d", network, d.Blocks, builds)
		}
	}
}

func TestRoundsMayComeInAnyOrder(t *testing.T) {
	w := usual()
	trials := w.trials(t)
	want, _, _ := insight.Deltas(w.cells(), trials, insight.Options{})
	for i := range trials {
		if i%2 == 0 {
			b := &trials[i].Bursts
			slices.Reverse(b.Round)
			for _, column := range [][]float64{b.P50, b.P90, b.Min, b.Mean, b.Split} {
				slices.Reverse(column)
			}
		}
	}
	got, _, _ := insight.Deltas(w.cells(), trials, insight.Options{})
	for i := range want {
		near(t, want[i].Network+" "+want[i].Metric, got[i].Ratio, want[i].Ratio, 1e-9)
	}
}

// TestAnyTrialsGiveJSON holds that no trials, however odd, give figures that JSON can't hold or a verdict without an
// interval.
func TestAnyTrialsGiveJSON(t *testing.T) {
	w := usual()
	value := rapid.OneOf(rapid.Just(0.0), rapid.Just(math.NaN()), rapid.Just(math.Inf(1)), rapid.Just(-1.0),
		rapid.Just(math.MaxFloat64), rapid.Just(math.SmallestNonzeroFloat64), rapid.Float64Range(1, 1e6))
	property.Check(t, func(t *rapid.T) {
		var trials []result.Trial
		for range rapid.IntRange(0, 40).Draw(t, "trials") {
			cell := rapid.SampledFrom(w.cells()).Draw(t, "cell")
			trial := result.Trial{Cell: cell.ID, Role: cell.Role, Build: rapid.IntRange(0, 8).Draw(t, "build")}
			trial.Bursts.Round = rapid.SliceOfN(rapid.IntRange(0, 5), 0, 5).Draw(t, "rounds")
			n := len(trial.Bursts.Round)
			trial.Bursts.P50 = rapid.SliceOfN(value, n, n).Draw(t, "p50")
			trial.Bursts.Split = rapid.SliceOfN(value, n, n).Draw(t, "split")
			trial.Sent = rapid.Int64Range(0, 10).Draw(t, "sent")
			trial.Lost = rapid.Int64Range(0, 10).Draw(t, "lost")
			trial.Histogram = rapid.SampledFrom([]string{"", "broken"}).Draw(t, "histogram")
			trial.Failed = rapid.SampledFrom([]string{"", "", "", "failed"}).Draw(t, "failed")
			trials = append(trials, trial)
		}
		run := result.Run{Cells: w.cells(), Margin: 0.02}
		words.NewJudge(nil).Conclude(&run, trials)
		for _, part := range insight.Parts(run) {
			words.Conclusion(insight.Conclude(part))
		}
		if _, err := json.Marshal(run); err != nil {
			t.Fatal(err)
		}
		for _, d := range append(run.Deltas, run.Null...) {
			if d.Verdict == "" || d.Verdict != "unresolved" && !insight.HasInterval(d) || !insight.HasInterval(d) && d.Need == 0 {
				t.Fatalf("%+v", d)
			}
		}
	})
}

// Without a usable A/A control nothing is called real, however plain; in a run that was to have none, verdicts rest on the intervals.
func TestFloorWithoutControls(t *testing.T) {
	w := usual()
	trials := slices.DeleteFunc(w.trials(t), func(t result.Trial) bool { return t.Role == result.RoleControl })
	deltas, _, _ := insight.Deltas(w.cells(), trials, insight.Options{})
	if d := find(t, deltas, "vxlan", "p50"); d.Verdict != "unresolved" || d.Floor != nil {
		t.Errorf("no control was measured: %s", show([]result.Delta{d}))
	}
	cells := slices.DeleteFunc(w.cells(), func(c result.Cell) bool { return c.Role == result.RoleControl })
	deltas, _, _ = insight.Deltas(cells, trials, insight.Options{})
	if d := find(t, deltas, "vxlan", "p50"); d.Verdict != "slower" || d.Floor != nil {
		t.Errorf("no control was planned: %s", show([]result.Delta{d}))
	}
	deltas, null, _ := insight.Deltas(w.cells(), w.trials(t), insight.Options{})
	d, n := find(t, deltas, "vxlan", "p50"), find(t, null, "host", "p50")
	if d.Floor == nil || n.Floor == nil || *d.Floor != *n.Floor || *d.Floor <= 0 || *d.Floor > 0.02 {
		t.Errorf("the floor is not written down: %v, %v", d.Floor, n.Floor)
	}
}

// What a network adds in time has an interval of its own, which holds the truth as often as it says: builds of the baseline
// scatter too, and one point of it does not show that.
func TestAddedTimeHasItsOwnInterval(t *testing.T) {
	const runs, added = 300, 0.31
	held := 0
	for seed := range uint64(runs) {
		w := world{networks: []string{"vxlan"}, logs: map[string]float64{"vxlan": math.Log1p(added)}, builds: 6, rounds: 8, buildSD: 0.02, roundSD: 0.02, seed: seed + 1}
		deltas, _, _ := insight.Deltas(w.cells(), w.trials(t), insight.Options{HeadlinesOnly: true})
		d := find(t, deltas, "vxlan", "p50")
		if *d.DifferenceLow <= added*baseNS && added*baseNS <= *d.DifferenceHigh {
			held++
		}
	}
	if share := float64(held) / runs; share < 0.92 || share > 0.985 {
		t.Errorf("%.1f%% of the 95%% intervals hold what is added", 100*share)
	}
}

// In an imported run nothing pairs a file of one network with one of the other: their order makes no difference.
func TestUnpairedHeedsNoOrder(t *testing.T) {
	w := usual()
	w.builds, w.buildSD = 4, 0.02
	trials := w.trials(t)
	before, _, _ := insight.Deltas(w.cells(), trials, insight.Options{Unpaired: true, HeadlinesOnly: true})
	for i := range trials {
		if trials[i].Cell == "vxlan" {
			trials[i].Build = w.builds - 1 - trials[i].Build
		}
	}
	after, _, _ := insight.Deltas(w.cells(), trials, insight.Options{Unpaired: true, HeadlinesOnly: true})
	a, b := find(t, before, "vxlan", "p50"), find(t, after, "vxlan", "p50")
	if a.Verdict != "slower" || math.Abs(*a.RatioLow-*b.RatioLow) > 1e-9 || math.Abs(*a.P-*b.P) > 1e-9 {
		t.Errorf("in another order:\n%s", show([]result.Delta{a, b}))
	}
}
