package benchfmt

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	perf "golang.org/x/perf/benchfmt"
	"pgregory.net/rapid"

	"netdelta/insight"
	"netdelta/internal/golden"
	"netdelta/internal/property"
	"netdelta/report/reporttest"
	"netdelta/result"
	"netdelta/stats"
	"netdelta/unit"
)

func written(t testing.TB, run result.Run, trials []result.Trial) string {
	t.Helper()
	var out bytes.Buffer
	if err := Write(&out, run, result.List(trials)); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// parsed is what benchstat's own reader finds in a text: the values by benchmark and unit, the configuration, and what is known
// of the units.
type parsed struct {
	values map[string]map[string][]float64
	config map[string]string
	better map[string]string
}

// parse reads a text with that reader, which may find nothing to complain of.
func parse(t testing.TB, text string) parsed {
	t.Helper()
	p := parsed{map[string]map[string][]float64{}, map[string]string{}, map[string]string{}}
	r := perf.NewReader(strings.NewReader(text), "run")
	for r.Scan() {
		switch record := r.Result().(type) {
		case *perf.Result:
			p.result(record)
		case *perf.SyntaxError:
			t.Error(record)
		}
	}
	if err := r.Err(); err != nil {
		t.Error(err)
	}
	for key, known := range r.Units() {
		if known.Key == "better" {
			p.better[key.Unit] = known.Value
		}
	}
	return p
}

// result takes over a benchmark's line, its values in the units in which they were written.
func (p parsed) result(r *perf.Result) {
	name := "Benchmark" + r.Name.String()
	if p.values[name] == nil {
		p.values[name] = map[string][]float64{}
	}
	for _, v := range r.Values {
		value, of := v.Value, v.Unit
		if v.OrigUnit != "" {
			value, of = v.OrigValue, v.OrigUnit
		}
		p.values[name][of] = append(p.values[name][of], value)
	}
	for _, c := range r.Config {
		if c.File {
			p.config[c.Key] = string(c.Value)
		}
	}
}

func TestGolden(t *testing.T) {
	w := reporttest.Usual()
	w.Builds = 2
	golden.CheckRounded(t, "testdata/run.txt", written(t, first(w.Measure(t)), second(w.Measure(t))))
}

func first(run result.Run, _ []result.Trial) result.Run         { return run }
func second(_ result.Run, trials []result.Trial) []result.Trial { return trials }

// The reader of the format finds one value for each build, whose median is the run's, and knows which way is better.
func TestReaderFindsTheRun(t *testing.T) {
	run, trials := reporttest.Usual().Measure(t)
	p := parse(t, written(t, run, trials))
	if len(p.values) != 4 {
		t.Errorf("%d benchmarks, want the baseline, its A/A control and two networks", len(p.values))
	}
	for _, cell := range run.Cells {
		units := p.values[name(cell, 2)]
		want := map[string][]float64{}
		for _, trial := range trials {
			if trial.Cell == cell.ID {
				for _, f := range insight.Figures(trial) {
					want[f.Metric] = append(want[f.Metric], f.Value)
				}
			}
		}
		for _, metric := range []string{"p50", "p90"} {
			got := units[metric+"-ns/op"]
			if len(got) != 8 || len(want[metric]) != 8 {
				t.Fatalf("%s has %d values of %s, and the run %d", cell.ID, len(got), metric, len(want[metric]))
			}
			if a, b := stats.Median(got), stats.Median(want[metric]); math.Abs(a-b) > 1e-9*b {
				t.Errorf("%s: the median %s is %v, want %v", cell.ID, metric, a, b)
			}
		}
	}
	// The median of the medians is what the run's own record has.
	for _, d := range run.Deltas {
		if d.Headline && d.Network == "vxlan" {
			got := stats.Median(p.values["BenchmarkTcpRR/network=vxlan/placement=cross-node/message=300-2"]["p50-ns/op"])
			if math.Abs(got/d.Value-1) > 0.01 {
				t.Errorf("vxlan has %v ns, and the run says %v", got, d.Value)
			}
		}
	}
	if p.better["p50-sec/op"] != "lower" {
		t.Errorf("what is better: %v", p.better)
	}
	for key, want := range map[string]string{
		"goos": "linux", "goarch": "amd64", "kernel": "6.12.1", "cpu": "Example CPU @ 2.00GHz", "net.ipv4.tcp_congestion_control": "cubic",
	} {
		if p.config[key] != want {
			t.Errorf("%s is %q, want %q", key, p.config[key], want)
		}
	}
}

// Two runs of one machine have the same configuration, or the tools that group by it would not hold them against each other.
func TestConfigurationIsThatOfTheMachine(t *testing.T) {
	a, b := reporttest.Usual(), reporttest.Usual()
	b.Name, b.Seed = "latency-20300102-040506", 2
	run, trials := b.Measure(t)
	run.Started = run.Started.AddDate(0, 0, 1)
	if diff := cmp.Diff(parse(t, written(t, first(a.Measure(t)), second(a.Measure(t)))).config, parse(t, written(t, run, trials)).config); diff != "" {
		t.Error(diff)
	}
	run.Environment.Kernel = "6.18.0"
	if parse(t, written(t, run, trials)).config["kernel"] != "6.18.0" {
		t.Error("the kernel is not in the configuration")
	}
}

// What does not count is not a replication: trials that failed or were misrouted, and bursts that were disturbed.
func TestOnlyWhatCounts(t *testing.T) {
	run, trials := reporttest.Usual().Measure(t)
	failed, misrouted, disturbed := 0, 0, 0
	for i := range trials {
		if trials[i].Cell != run.Cells[2].ID {
			continue
		}
		switch trials[i].Build {
		case 0:
			trials[i].Failed = "no reply"
			failed++
		case 1:
			trials[i].Path = &result.Path{OK: false}
			misrouted++
		case 2:
			for row := range trials[i].Bursts.P50 {
				if row%2 == 0 {
					trials[i].Bursts.P50[row], trials[i].Bursts.Disturbed[row] = 1e9, "steal"
					disturbed++
				}
			}
		}
	}
	got := parse(t, written(t, run, trials)).values["BenchmarkTcpRR/network=bridge/placement=cross-node/message=300-2"]["p50-ns/op"]
	if len(got) != 6 || failed+misrouted != 2 || disturbed == 0 {
		t.Errorf("%d replications of 8 builds, of which %d count", len(got), 8-failed-misrouted)
	}
	for _, v := range got {
		if v > 1e5 {
			t.Errorf("a disturbed burst was counted: %v ns", v)
		}
	}
}

func TestNames(t *testing.T) {
	for want, c := range map[string]result.Cell{
		"BenchmarkTcpRR/network=vxlan/placement=cross-node/message=300-1": {
			Workload: "tcp-rr", Network: "vxlan", Placement: "cross-node", Path: "pod", Params: result.Params{Message: 300},
		},
		"BenchmarkUdpStream/network=bridge-nat/path=nodeport/placement=same-node/connections=4/rate=1000000000/search=yes/role=twin-1": {
			Workload: "udp-stream", Network: "bridge-nat", Placement: "same-node", Path: "nodeport", Role: result.RoleControl,
			Params: result.Params{Connections: 4, Rate: unit.Gbit, Search: true},
		},
		"BenchmarkHttp/network=cni:%2Fetc%2Fa%20b.conflist/requests=1500/cpu=two/busypoll=50000/cc=bbr/nagle=yes/mtu=9000/family=ipv6-1": {
			Workload: "http", Network: "cni:/etc/a b.conflist", Path: "pod",
			Params: result.Params{RequestRate: 1500, CPU: "two", BusyPoll: 50_000, CongestionControl: "bbr", Nagle: true, MTU: 9000, Family: "ipv6"},
		},
	} {
		if got := name(c, 0); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestHostileNames(t *testing.T) {
	run, trials := reporttest.Spoiled(t)
	text := written(t, run, trials)
	if strings.ContainsAny(text, "\x1b\x07\u202e") {
		t.Errorf("what a terminal obeys is in the text:\n%q", text)
	}
	if p := parse(t, text); len(p.values) != 4 {
		t.Errorf("%d benchmarks, want 4", len(p.values))
	}
}

// Whatever a network is called, its line is read as one benchmark, and the name is what differs.
func TestAnyNameIsOnePart(t *testing.T) {
	property.Check(t, func(r *rapid.T) {
		network := rapid.String().Draw(r, "network")
		full := name(result.Cell{Workload: "tcp-rr", Network: network, Path: "pod", Params: result.Params{Message: 300}}, 2)
		// A slash begins a part, and what is behind the last dash is the number of processors.
		parts := strings.Split(strings.TrimSuffix(full, "-2"), "/")
		want := 3
		if network == "" {
			want = 2
		}
		if parts[0] != "BenchmarkTcpRR" || len(parts) != want || parts[want-1] != "message=300" {
			r.Fatalf("%q: %s has the parts %q", network, full, parts)
		}
		if strings.ContainsFunc(full, func(c rune) bool { return c <= ' ' || c > '~' }) {
			r.Fatalf("%q is written %q", network, full)
		}
	})
}
