package openmetrics

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"netdelta/internal/golden"
	"netdelta/internal/leak"
	"netdelta/report/reporttest"
	"netdelta/report/ui"
	"netdelta/result"
)

func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }

func written(t *testing.T, s Snapshot) string {
	t.Helper()
	var out bytes.Buffer
	if err := Write(&out, s); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// parse reads metrics back with Prometheus's own parser.
func parse(t *testing.T, text string) map[string]*dto.MetricFamily {
	t.Helper()
	body, ended := strings.CutSuffix(text, "# EOF\n")
	if !ended || strings.Contains("\n"+body, "\n# EOF") {
		t.Fatalf("it does not end with the format's mark:\n%s", text)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(body))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return families
}

// sample is a small run, with its baseline's null check.
func sample(t *testing.T) Snapshot {
	t.Helper()
	w := reporttest.Usual()
	w.Networks = []string{"vxlan"}
	run, trials := w.Measure(t)
	run.Checks = append(run.Checks, result.Check{Trial: "vxlan#1", Check: "path", Expected: "node0/eth0", Observed: "node0/eth1"})
	run.Claims = []result.Claim{{ID: "c", Says: "VXLAN costs most", Verdict: "confirmed"}}
	trials[3].Failed = "the agent was killed"
	trials[7].Path = &result.Path{}
	return Snapshot{Run: run, Trials: result.List(trials)}
}

func TestGolden(t *testing.T) {
	running := sample(t)
	running.Run.Finished = time.Time{}
	running.Progress = &Progress{Build: 3, Round: 4, Rounds: 20, Cells: 3, Open: 1, Elapsed: 12 * time.Second, Budget: time.Minute}
	for name, s := range map[string]Snapshot{"run": sample(t), "running": running, "empty": {Run: result.Run{Study: "latency"}}} {
		got := written(t, s)
		parse(t, got)
		golden.CheckRounded(t, filepath.Join("testdata", name+".txt"), got)
	}
}

// Names are such as Prometheus advises.
func TestNames(t *testing.T) {
	var families []*dto.MetricFamily
	for _, f := range parse(t, written(t, sample(t))) {
		families = append(families, f)
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// value finds the one series of a family with these labels.
func value(t *testing.T, families map[string]*dto.MetricFamily, name string, labels ...label) float64 {
	t.Helper()
	var found []float64
	for _, m := range families[name].GetMetric() {
		has := map[string]string{}
		for _, l := range m.GetLabel() {
			has[l.GetName()] = l.GetValue()
		}
		all := true
		for _, l := range labels {
			all = all && has[l.name] == l.value
		}
		if all {
			found = append(found, m.GetGauge().GetValue())
		}
	}
	if len(found) != 1 {
		t.Fatalf("%s%v has %d series", name, labels, len(found))
	}
	return found[0]
}

// The figures are the record's, in base units.
func TestFigures(t *testing.T) {
	s := sample(t)
	families := parse(t, written(t, s))
	for _, d := range s.Run.Deltas {
		labels := []label{{"network", d.Network}, {"metric", d.Metric}, {"placement", "cross-node"}, {"workload", "tcp-rr"}, {"study", "latency"}}
		near := func(name string, want float64) {
			if got := value(t, families, name, labels...); math.Abs(got-want) > 1e-9*math.Abs(want) {
				t.Errorf("%s of %s is %v, want %v", name, d.Metric, got, want)
			}
		}
		near("netdelta_delta_ratio", d.Ratio)
		near("netdelta_delta_ratio_low", *d.RatioLow)
		near("netdelta_delta_ratio_high", *d.RatioHigh)
		if d.Unit == "ns" {
			near("netdelta_delta_value_seconds", d.Value/1e9)
			near("netdelta_delta_baseline_seconds", d.BaselineValue/1e9)
			near("netdelta_delta_difference_seconds", d.Difference/1e9)
		}
		if got := value(t, families, "netdelta_delta_verdict", append(labels, label{"verdict", d.Verdict})...); got != 1 {
			t.Errorf("the verdict %s of %s is %v", d.Verdict, d.Metric, got)
		}
	}
	if len(s.Run.Null) == 0 || len(families["netdelta_null_ratio"].GetMetric()) != len(s.Run.Null) {
		t.Errorf("%d of %d null checks", len(families["netdelta_null_ratio"].GetMetric()), len(s.Run.Null))
	}
	total := 0.0
	for _, m := range families["netdelta_trials"].GetMetric() {
		total += m.GetGauge().GetValue()
	}
	if int(total) != s.Trials.Len() {
		t.Errorf("%v of %d trials", total, s.Trials.Len())
	}
	for state, want := range map[string]float64{"failed": 1, "misrouted": 1} {
		sum := 0.0
		for _, c := range s.Run.Cells {
			sum += value(t, families, "netdelta_trials", label{"cell", c.ID}, label{"state", state})
		}
		if sum != want {
			t.Errorf("%v trials are %s", sum, state)
		}
	}
	if value(t, families, "netdelta_failed_checks", label{"check", "path"}) != 1 || value(t, families, "netdelta_claims", label{"verdict", "confirmed"}) != 1 {
		t.Error("checks or claims are not counted")
	}
}

// No value is one that a reader would take for a measurement and that is none.
func TestNoNumber(t *testing.T) {
	inf := math.Inf(1)
	text := written(t, Snapshot{Run: result.Run{Deltas: []result.Delta{{Metric: "p50", Unit: "ns", Judgement: result.Judgement{Ratio: math.NaN(), RatioHigh: &inf}, Value: inf}}}})
	parse(t, text)
	if strings.Contains(text, "NaN") || strings.Contains(text, "Inf") {
		t.Errorf("%s", text)
	}
}

func TestHostileNames(t *testing.T) {
	run, trials := reporttest.Spoiled(t)
	text := written(t, Snapshot{Run: run, Trials: result.List(trials)})
	parse(t, text)
	if strings.ContainsAny(text, "\x1b\x07\u202e") {
		t.Errorf("what a terminal obeys comes through: %q", text)
	}
}

func FuzzNames(f *testing.F) {
	for _, seed := range []string{"vxlan", `a"b`, `\`, "a\nb", "}", "# EOF", reporttest.Hostile(), "\xff", "é"} {
		f.Add(seed, seed)
	}
	f.Fuzz(func(t *testing.T, name, unit string) {
		s := Snapshot{Run: result.Run{
			Run: name, Study: name, Cells: []result.Cell{{ID: name, Network: name}, {ID: name, Network: name}},
			Deltas: []result.Delta{{Network: name, Baseline: name, Setting: result.Setting{Workload: name}, Metric: name, Cell: name, Unit: unit, Judgement: result.Judgement{Ratio: 1.5}, Value: 2}},
		}}
		text := written(t, s)
		families := parse(t, text)
		if got := value(t, families, "netdelta_delta_ratio", label{"network", ui.Clean(name)}); got != 1.5 {
			t.Errorf("%q: %v", name, got)
		}
	})
}

func TestErrorOfTheWriter(t *testing.T) {
	if err := Write(reporttest.Full{}, Snapshot{}); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("%v", err)
	}
}
