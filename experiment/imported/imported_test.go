package imported_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"netdelta/experiment/imported"
	"netdelta/report/words"
	"netdelta/result"
	"netdelta/stats"
	"netdelta/unit"
	"netdelta/workload"
)

// tools has the outputs of the programs.
const tools = "../../workload/tool"

func sample(name string) string { return filepath.Join(tools, filepath.FromSlash(name)) }

// alone is the figures of one file: it stands for both networks.
func alone(t *testing.T, name, workload string) (result.Cell, result.Trial) {
	t.Helper()
	in, err := imported.Read([]imported.Source{{"a", []string{sample(name)}}, {"b", []string{sample(name)}}}, imported.Options{Workload: workload})
	if err != nil {
		t.Fatal(err)
	}
	return in.Run.Cells[0], in.Trials[0]
}

func TestEachProgram(t *testing.T) {
	for _, c := range []struct {
		file     string
		workload string // that the user says
		want     string
		params   result.Params
		columns  string // of the burst
	}{
		{"iperf3/testdata/udp.json", "", "udp-stream", result.Params{Message: 1400, Connections: 2, Rate: 40 * unit.Mbit, Engine: "iperf3"}, "throughput lost"},
		{"sockperf/testdata/tcp.txt", "", "tcp-rr", result.Params{Engine: "sockperf"}, "p50 p90 p99 mean min"},
		{"sockperf/testdata/udp-half.txt", "", "udp-rr", result.Params{Engine: "sockperf"}, "p50 p90 p99 mean min"},
		{"sockperf/testdata/log.csv", "udp-rr", "udp-rr", result.Params{Message: 64, Engine: "sockperf"}, "p50 p90 p99 mean min histogram"},
		{"sockperf/testdata/under-load.csv", "tcp-rr", "tcp-rr", result.Params{Message: 64, RequestRate: 1000, Engine: "sockperf"}, "p50 p99 histogram"},
		{"netperf/testdata/tcp-rr.txt", "", "tcp-rr", result.Params{Message: 64, Engine: "netperf"}, "rate"},
		{"netperf/testdata/omni.csv", "", "tcp-rr", result.Params{Message: 64, CongestionControl: "cubic", Engine: "netperf"}, "rate p50 p90 p99 mean min"},
		{"netperf/testdata/tcp-stream.txt", "", "tcp-stream", result.Params{Message: 64 * unit.KiB, Engine: "netperf"}, "throughput"},
		{"netperf/testdata/udp-stream.txt", "", "udp-stream", result.Params{Message: 1024, Engine: "netperf"}, "throughput lost"},
		{
			"fio/testdata/nbd-randread.txt", "", "block",
			result.Params{Own: result.OwnOf("store", "nbd", "operation", "randread", "block", 4*unit.KiB, "depth", 1)}, "rate throughput p50 p90 p99 mean min histogram",
		},
		{"sysbench/testdata/read-write.txt", "", "oltp", result.Params{Connections: 8}, "rate p50 p90 p99 mean min histogram"},
		{"sysbench/testdata/no-histogram.txt", "", "oltp", result.Params{Connections: 8}, "rate mean min"},
		{"wrk/testdata/plain.txt", "", "http", result.Params{Connections: 1, Engine: "wrk"}, "rate throughput mean"},
		{"wrk/testdata/json.txt", "", "http", result.Params{Connections: 4, Engine: "wrk"}, "rate throughput p50 p90 p99 mean histogram"},
		{"k6/testdata/summary.json", "", "http", result.Params{Connections: 8, Engine: "k6"}, "rate throughput p50 p90 mean min"},
		{"k6/testdata/stream.json", "", "http", result.Params{Connections: 1, Engine: "k6"}, "rate throughput p50 p90 p99 mean min histogram"},
	} {
		cell, trial := alone(t, c.file, c.workload)
		if cell.Workload != c.want || cell.Params != c.params {
			t.Errorf("%s is %s %+v, want %s %+v", c.file, cell.Workload, cell.Params, c.want, c.params)
		}
		for _, column := range strings.Fields(c.columns) {
			if !holds(trial, column) {
				t.Errorf("%s has no %s: %+v", c.file, column, trial.Bursts)
			}
		}
		if n := len(trial.Bursts.Round); n != 1 || trial.Bursts.Duration[0] <= 0 || trial.Started.Year() < 2020 || trial.ClientCPU != -1 {
			t.Errorf("%s: %+v", c.file, trial)
		}
	}
}

// holds says whether a trial has a figure above 0 in a column.
func holds(t result.Trial, column string) bool {
	b := t.Bursts
	if column == "histogram" {
		_, err := result.DecodeHistogram(t.Histogram)
		return err == nil
	}
	if column == "lost" {
		return len(b.Lost) == 1 && b.Lost[0] > 0 && t.Sent >= t.Lost
	}
	values := map[string][]float64{
		"throughput": b.Throughput, "rate": b.Rate, "p50": b.P50, "p90": b.P90, "p99": b.P99, "mean": b.Mean, "min": b.Min,
	}[column]
	return len(values) == 1 && values[0] > 0
}

// write makes a file of a test of netperf with a rate of transactions.
func write(t *testing.T, name, rate string) string {
	t.Helper()
	text, err := os.ReadFile(sample("netperf/testdata/tcp-rr.txt"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(strings.Replace(string(text), "27291.86", rate, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestFilesAreBuilds: files of networks measured in turn are paired by their order, and deltas have an interval where there are enough files.
func TestFilesAreBuilds(t *testing.T) {
	host, slow := imported.Source{Network: "host"}, imported.Source{Network: "slow"}
	for i, rate := range []string{"10000", "20000", "10500", "19000", "30000", "10000"} {
		host.Files = append(host.Files, write(t, "host", rate))
		half := map[string]string{"10000": "5000", "20000": "10010", "10500": "5240", "19000": "9520", "30000": "14990"}[rate]
		slow.Files = append(slow.Files, write(t, "slow", half))
		in, err := imported.Read([]imported.Source{host, slow}, imported.Options{InTurn: true})
		if err != nil {
			t.Fatal(err)
		}
		// The catalogue of workloads would do, but its measured loops don't link with what a fuzzer adds.
		words.NewJudge([]workload.Workload{{Name: "tcp-rr", Headline: "p50"}}).Conclude(&in.Run, in.Trials)
		if len(in.Run.Deltas) != 1 {
			t.Fatalf("%d deltas", len(in.Run.Deltas))
		}
		d := in.Run.Deltas[0]
		if d.Metric != "rate" || d.Ratio < 0.495 || d.Ratio > 0.505 || d.Blocks != i+1 || !d.Headline {
			t.Errorf("of %d files: %+v", i+1, d)
		}
		if enough := i+1 >= stats.DefaultMinBuilds; (d.RatioLow != nil) != enough || !enough && d.Need != stats.DefaultMinBuilds {
			t.Errorf("of %d files: an interval of %v, %d are needed", i+1, d.RatioLow, d.Need)
		}
		if i == 5 && d.Verdict != "slower" {
			t.Errorf("half the rate is %s", d.Verdict)
		}
	}
}

// Names are those that studies may have, and what files say of themselves is plain.
func TestNamesAreClean(t *testing.T) {
	file := sample("netperf/testdata/tcp-rr.txt")
	for _, name := range []string{"\x1b[2Jhost", "<script>", "a b", "x..y", strings.Repeat("a", 65)} {
		_, err := imported.Read([]imported.Source{{"host", []string{file}}, {name, []string{file}}}, imported.Options{})
		if err == nil || !strings.Contains(err.Error(), "use up to 64 letters") || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("network %q: %v", name, err)
		}
	}
	text, err := os.ReadFile(sample("iperf3/testdata/tcp.json"))
	if err != nil {
		t.Fatal(err)
	}
	hostile := filepath.Join(t.TempDir(), "hostile.json")
	changed := regexp.MustCompile(`"version":(\s*)"[^"]*"`).ReplaceAll(text, []byte(`"version":$1"iperf \u001b[2J<b>3.9`+strings.Repeat("x", 100)+`"`))
	if err := os.WriteFile(hostile, changed, 0o644); err != nil {
		t.Fatal(err)
	}
	in, err := imported.Read([]imported.Source{{"host", []string{hostile}}, {"vxlan", []string{hostile}}}, imported.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if v := in.Run.Environment.Versions["iperf3"]; len(v) > 64 || strings.ContainsAny(v, "\x1b<>") || !strings.Contains(v, "3.9") {
		t.Errorf("version %q", v)
	}
}

// TestLoadsDoNotMix: a file of another load is held against files of that load alone.
func TestLoadsDoNotMix(t *testing.T) {
	small, large := sample("netperf/testdata/tcp-rr.txt"), sample("netperf/testdata/tcp-stream.txt")
	in, err := imported.Read([]imported.Source{{"vxlan", []string{small, large, small}}, {"host", []string{large, small}}},
		imported.Options{Baseline: "host", Placement: result.SameNode, InTurn: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(in.Run.Cells) != 4 || len(result.Settings(in.Run.Cells)) != 2 || len(in.Trials) != 5 {
		t.Errorf("%d cells, %d trials", len(in.Run.Cells), len(in.Trials))
	}
	for _, c := range in.Run.Cells {
		if (c.Network == "host") != (c.Role == result.RoleBaseline) || c.Placement != result.SameNode {
			t.Errorf("%+v", c)
		}
	}
	if !slices.ContainsFunc(in.Run.Notes, func(n string) bool { return strings.Contains(n, "has 2 files and the baseline 1") }) {
		t.Errorf("the notes are %q", in.Run.Notes)
	}
	if in.Run.Testbed != result.Imported || in.Run.Environment.Kernel != "" || !strings.Contains(in.Run.Notes[0], "nobody could prove") {
		t.Errorf("%+v", in.Run)
	}
	if !strings.HasPrefix(string(in.Study), "# Measured elsewhere") {
		t.Errorf("%s", in.Study)
	}
}

func TestRefused(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := sample("iperf3/testdata/tcp.json")
	cut, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ file, want string }{
		{file("cut.json", string(cut[:3000])), "cut.json:136:20: as iperf3 (-J): unexpected end"},
		{file("people.txt", "Connecting to host 198.18.0.2, port 5201\n"), "run it with -J"},
		{file("empty", ""), "it is empty"},
		{file("binary", "\x7fELF\x02\x01\xff\xfe\x00"), "it is binary"},
		{file("other.json", `{"a": 1}`), "it is JSON of another program"},
		{file("people.fio", "job: (groupid=0, jobs=1): err= 0"), "--output-format=json"},
		{sample("netperf/testdata/refused.txt"), "no format that is known"},
		{sample("iperf3/testdata/refused.json"), "Connection refused"},
		{sample("iperf3/testdata/bidir.json"), "both directions"},
		{sample("sockperf/testdata/log.csv"), "say --workload tcp-rr or udp-rr"},
		{sample("sockperf/testdata/throughput.txt"), "throughput.txt:11: as sockperf"},
		{filepath.Join(dir, "absent"), "no such file"},
		{dir, "it is a folder"},
	} {
		_, err := imported.Read([]imported.Source{{"host", []string{good}}, {"vxlan", []string{c.file}}}, imported.Options{})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.file, err, c.want)
		}
	}
	for _, c := range []struct {
		sources []imported.Source
		options imported.Options
		want    string
	}{
		{[]imported.Source{{"host", []string{good}}}, imported.Options{}, "a delta takes two"},
		{[]imported.Source{{"host", []string{good}}, {"host", []string{good}}}, imported.Options{}, "network host is there twice"},
		{[]imported.Source{{"host", []string{good}}, {"vxlan", []string{good}}}, imported.Options{Baseline: "metal"}, "no file is of the baseline metal"},
	} {
		if _, err := imported.Read(c.sources, c.options); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}

// TestPercentilesThatAreTold: a 99th percentile is a metric too where the program gives no distribution, and each line of CSV is a build.
func TestPercentilesThatAreTold(t *testing.T) {
	file := []string{sample("netperf/testdata/omni.csv")}
	in, err := imported.Read([]imported.Source{{"host", file}, {"vxlan", file}}, imported.Options{})
	if err != nil {
		t.Fatal(err)
	}
	words.NewJudge([]workload.Workload{{Name: "tcp-rr", Headline: "p50"}}).Conclude(&in.Run, in.Trials)
	found := map[string]int{}
	for _, d := range in.Run.Deltas {
		found[d.Metric] = d.Blocks
	}
	if found["p99"] != 2 || found["p50"] != 2 || found["rate"] != 2 {
		t.Errorf("the builds of each metric are %v", found)
	}
}
