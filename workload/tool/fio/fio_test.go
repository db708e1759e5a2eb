package fio_test

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"netdelta/internal/latency"
	"netdelta/internal/property"
	"netdelta/unit"
	"netdelta/workload/tool/fio"
)

func sample(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func parse(t *testing.T, name string) *fio.Report {
	t.Helper()
	r, err := fio.Parse(sample(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A report of the engine nbd, which says something of its own before it.
func TestHistogram(t *testing.T) {
	r := parse(t, "nbd-randread.txt")
	if r.Version != "fio-3.33" || r.Written.UnixMilli() != 1795363001747 || len(r.Jobs) != 1 {
		t.Fatalf("%+v", r)
	}
	j := r.Jobs[0]
	if j.Name != "netdelta" || j.Options["bs"] != "4096" || j.Error != 0 || j.Errors != 0 || j.User != 0 || j.System != 11*time.Millisecond {
		t.Errorf("%+v", j)
	}
	d := j.Done()
	// The operation that was under way when the warm-up ended is among the bytes.
	if d.Operations != 1184 || d.Bytes != 1185*4096 || d.Duration != 51*time.Millisecond || d.Throughput != 95171764*8 || d.Rate != 23215.686275 {
		t.Errorf("%+v", d)
	}
	l := d.Latency
	if l.Count != 1184 || l.Min != 29524 || l.Max != 2701794 || l.Mean != 41765.034628 {
		t.Errorf("%+v", l)
	}
	// fio's own percentiles are the ends of bins.
	for _, p := range l.Percentiles {
		if p.Percent < 20 || p.Percent > 99 {
			continue
		}
		if got := l.Quantile(p.Percent / 100); math.Abs(got/p.Nanoseconds-1) > 1.0/64 {
			t.Errorf("p%v: %v ns, and fio says %v", p.Percent, got, p.Nanoseconds)
		}
	}
	h := latency.NewHistogram()
	if l.Record(h); h.Count() != 1184 {
		t.Errorf("the histogram has %d of 1184 latencies", h.Count())
	}
	if l.Quantile(0) != l.Min || l.Quantile(1) != l.Max {
		t.Errorf("the extremes are %v and %v, want %v and %v", l.Quantile(0), l.Quantile(1), l.Min, l.Max)
	}
}

func TestSeveralClientsAreOneJob(t *testing.T) {
	r := parse(t, "nbd-write-two-clients.txt")
	if len(r.Jobs) != 1 {
		t.Fatalf("%d jobs", len(r.Jobs))
	}
	d := r.Jobs[0].Done()
	if d.Operations != 41 || d.Bytes != 41*int64(unit.MiB) || d.Duration != 187*time.Millisecond || d.Latency.Count != 41 {
		t.Errorf("%+v", d)
	}
	if cpu := r.Jobs[0].User + r.Jobs[0].System; cpu < 9*time.Millisecond || cpu > 11*time.Millisecond {
		t.Errorf("processor time %v, want both clients': 10 ms", cpu)
	}
}

// A report of the plain format: two jobs, one of which reads and writes, and latencies of completion alone in percentiles.
func TestPlainReport(t *testing.T) {
	r := parse(t, "two-jobs.json")
	if len(r.Jobs) != 2 {
		t.Fatalf("%d jobs", len(r.Jobs))
	}
	reader, mixed := r.Jobs[0], r.Jobs[1]
	if reader.Options["ioengine"] != "psync" || reader.Options["rw"] != "randread" || mixed.Options["rwmixread"] != "70" {
		t.Errorf("options %v and %v", reader.Options, mixed.Options)
	}
	if mixed.Read.Operations != 4120 || mixed.Write.Operations != 1813 || mixed.Write.Rate != 34865.384615 {
		t.Errorf("%+v", mixed)
	}
	both := mixed.Done()
	if both.Operations != 5933 || both.Rate != mixed.Read.Rate+mixed.Write.Rate || both.Bytes != mixed.Read.Bytes+mixed.Write.Bytes || len(both.Latency.Percentiles) != 0 {
		t.Errorf("both directions are %+v", both)
	}
	if l := both.Latency; l.Mean <= min(mixed.Read.Latency.Mean, mixed.Write.Latency.Mean) || l.Mean >= max(mixed.Read.Latency.Mean, mixed.Write.Latency.Mean) {
		t.Errorf("the mean is %v, of %v and %v", l.Mean, mixed.Read.Latency.Mean, mixed.Write.Latency.Mean)
	}
	l := reader.Read.Latency
	if len(l.Bins) != 0 || l.Quantile(0.5) != 0 || l.Min != 781 {
		t.Errorf("%+v", l)
	}
	if !slices.Contains(l.Percentiles, fio.Percentile{Percent: 50, Nanoseconds: 1080}) {
		t.Errorf("percentiles %v", l.Percentiles)
	}
}

func TestRefused(t *testing.T) {
	const job = `{"fio version":"fio-3.33","jobs":[{"jobname":"a","read":{"total_ios":1,"lat_ns":{%}}}]}`
	for text, want := range map[string]string{
		"":                      "holds no JSON",
		"fio: no such engine\n": "holds no JSON",
		"note\n{\"jobs\": [}":   "2:11",
		"{}":                    "no version",
		`{"fio version":"fio-2.1.11","jobs":[{"jobname":"a","read":{"total_ios":1,"lat":{"min":1}}}]}`: "use fio 3.0",
		strings.Replace(job, "%", `"min":-1`, 1):                                                       "less than nothing",
		strings.Replace(job, "%", `"bins":{"x":1}`, 1):                                                 `"x" ns`,
		strings.Replace(job, "%", `"bins":{"100":-1}`, 1):                                              "-1 latencies",
		strings.Replace(job, "%", `"percentile":{"101":1}`, 1):                                         `"101"`,
		`{"fio version":"fio-3.33","jobs":[{"jobname":"a","read":{"runtime":-1}}]}`:                    "-1 ms",
	} {
		if r, err := fio.Parse([]byte(text)); err == nil || r != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, %v, want an error with %q", text, r, err, want)
		}
	}
}

// Whatever latencies there were, a quantile is off by no more than the bin that holds it, a 64th.
func TestQuantile(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Int64Range(1, 1<<33), 1, 200).Draw(t, "values")
		q := rapid.Float64Range(0, 1).Draw(t, "quantile")
		slices.Sort(values)
		l := fio.Latency{Min: float64(values[0]), Max: float64(values[len(values)-1])}
		for _, v := range values {
			low, high := fio.Bounds(v)
			if v < low || v >= high || (high-low)*64 > max(low, 64) {
				t.Fatalf("%d is counted from %d to %d", v, low, high)
			}
			l.Bins = append(l.Bins, fio.Bin{Low: low, High: high, Count: 1})
		}
		below := float64(values[max(int(math.Ceil(q*float64(len(values))))-1, 0)])
		got := l.Quantile(q)
		if low, high := below*(1-1.0/64)-1, below*(1+1.0/64)+1; got < low || got > high {
			t.Fatalf("quantile %v of %v is %v, want %v to %v", q, values, got, low, high)
		}
		h := latency.NewHistogram()
		if l.Record(h); h.Count() != int64(len(values)) {
			t.Fatalf("the histogram has %d of %d latencies", h.Count(), len(values))
		}
	})
}

func TestArgs(t *testing.T) {
	args := strings.Join(fio.Args(fio.Job{
		Target:    fio.Target{Engine: "nbd", Options: []string{"uri=nbd://192.0.2.1:7/disk"}},
		Operation: "randread", Block: 4 * unit.KiB, Depth: 2, Clients: 3, Warmup: 50 * time.Millisecond, Duration: time.Second,
	}), " ")
	for _, want := range []string{
		"--ioengine=nbd", "--rw=randread", "--bs=4096", "--iodepth=2", "--numjobs=3", "--runtime=1000ms", "--ramp_time=50ms", "--time_based",
		"--uri=nbd://192.0.2.1:7/disk",
	} {
		if !strings.Contains(args, want) {
			t.Errorf("%s lacks %s", args, want)
		}
	}
	if strings.Contains(args, "rwmixread") || strings.Contains(args, "fsync") || strings.Contains(args, "clocksource") {
		t.Errorf("reads alone: %s", args)
	}
	mixed := strings.Join(fio.Args(fio.Job{Operation: "randrw", Reads: 0.7, Sync: 8, Block: 512, Counts: true, Duration: time.Second}), " ")
	if !strings.Contains(mixed, "--rwmixread=70") || !strings.Contains(mixed, "--fsync=8") || !strings.Contains(mixed, "--clocksource=cpu") {
		t.Errorf("seven reads to three writes: %s", mixed)
	}
	several := strings.Join(fio.Args(fio.Job{Target: fio.Target{Engine: "nbd", Places: []string{"uri=nbd://192.0.2.1/disk", "uri=nbd://192.0.2.2/disk"}}, Block: 512, Duration: time.Second}), " ")
	if !strings.HasSuffix(several, "--name=netdelta --ioengine=nbd --uri=nbd://192.0.2.1/disk --name=netdelta --ioengine=nbd --uri=nbd://192.0.2.2/disk") || strings.Count(several, "--bs=512") != 1 {
		t.Errorf("two places: %s", several)
	}
	some := strings.Join(fio.Args(fio.Job{Block: 512, Operations: 10}), " ")
	if !strings.Contains(some, "--io_size=5120") || strings.Contains(some, "time_based") {
		t.Errorf("ten operations: %s", some)
	}
}

func TestCheckVersion(t *testing.T) {
	for _, good := range []string{"fio-3.25\n", "fio-3.33", "fio-3.36-103-gb140", "fio-4.0"} {
		if err := fio.CheckVersion(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for said, want := range map[string]string{"fio-3.16": "too old", "fio-2.1.11": "too old", "BusyBox": "another program"} {
		if err := fio.CheckVersion(said); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", said, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, name := range []string{"nbd-randread.txt", "nbd-write-two-clients.txt", "two-jobs.json"} {
		f.Add(sample(f, name))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := fio.Parse(text)
		if err != nil {
			if r != nil {
				t.Error("an error, and a report")
			}
			return
		}
		for _, j := range r.Jobs {
			for _, d := range []fio.Direction{j.Read, j.Write, j.Done()} {
				if d.Operations < 0 || d.Bytes < 0 || d.Duration < 0 {
					t.Errorf("%+v", d)
				}
				if at := d.Latency.Quantile(0.99); !(at >= 0) {
					t.Errorf("p99 is %v", at)
				}
			}
		}
	})
}
