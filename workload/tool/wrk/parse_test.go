package wrk_test

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"netdelta/workload/tool/wrk"
)

func read(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestParse(t *testing.T) {
	r, err := wrk.Parse(read(t, "large.txt"))
	if err != nil {
		t.Fatal(err)
	}
	want := &wrk.Report{
		Connections: 8, Duration: 1010 * time.Millisecond, Requests: 7830, Bytes: 785037394,
		Mean: 2490 * time.Microsecond, Max: 47140 * time.Microsecond,
		Percentiles: []wrk.Percentile{
			{Share: 0.5, Latency: 659 * time.Microsecond}, {Share: 0.75, Latency: 2330 * time.Microsecond},
			{Share: 0.9, Latency: 5170 * time.Microsecond}, {Share: 0.99, Latency: 35020 * time.Microsecond},
		},
	}
	if !reflect.DeepEqual(r, want) {
		t.Errorf("got  %+v\nwant %+v", r, want)
	}
	for _, name := range []string{"missing.txt", "json-missing.txt"} {
		r, err := wrk.Parse(read(t, name))
		if err != nil || r.Errors.Status != r.Requests || r.Errors.Sum() != r.Requests || r.Requests == 0 {
			t.Errorf("%s: %+v, %v: every answer was an error", name, r, err)
		}
	}
	r, err = wrk.Parse([]byte("  5 requests in 2.00m, 1.50KB read\n  Socket errors: connect 1, read 2, write 3, timeout 4\n"))
	if err != nil || r.Errors != (wrk.Errors{Connect: 1, Read: 2, Write: 3, Timeout: 4}) || r.Duration != 2*time.Minute || r.Bytes != 1536 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestParseScript(t *testing.T) {
	r, err := wrk.Parse(read(t, "json.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if r.Duration != 1004700*time.Microsecond || r.Requests != 13660 || r.Bytes != 11460740 || r.Errors.Sum() != 0 {
		t.Errorf("%+v", r)
	}
	var n int64
	for _, l := range r.Latencies {
		n += l.Requests
	}
	ascend := slices.IsSortedFunc(r.Latencies, func(a, b wrk.Count) int { return int(a.Latency - b.Latency) })
	if n != r.Requests || !ascend || r.Latencies[0].Latency != 39*time.Microsecond {
		t.Errorf("%d of %d latencies, in order: %v", n, r.Requests, ascend)
	}
}

func TestParseRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                                         "no report of wrk",
		"unable to connect to 127.0.0.1:8080":      "unable to connect",
		"5 requests in 0.00us, 1B read":            "1: 5 requests in 0.00us",
		"x requests in 1.00s, 1B read":             `1: strconv.ParseInt`,
		"5 requests in 1.00x, 1B read":             `1: "1.00x" has no unit`,
		"\n5 requests in 1.00s, 1XB read":          `2: "1X" is not a number`,
		`{"duration_us":1,"requests":-1}`:          "a run takes time",
		`{"duration_us":"1"}`:                      "the line of JSON",
		`{"duration_us":1,"latencies":[[-1,1]]}`:   "1 requests of -1 us",
		"Socket errors: connect -1, read":          "errors sockets had",
		"  Latency   1.00ms  NaNms  1.00ms 90.00%": "not a number",
	} {
		if _, err := wrk.Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, name := range []string{"plain.txt", "large.txt", "missing.txt", "close.txt", "json.txt"} {
		f.Add(read(f, name))
	}
	f.Fuzz(func(t *testing.T, out []byte) {
		r, err := wrk.Parse(out)
		if (r == nil) == (err == nil) {
			t.Errorf("a report %v and an error %v", r, err)
		}
		if r != nil && r.Duration <= 0 {
			t.Errorf("a run of %v", r.Duration)
		}
	})
}

func TestArgs(t *testing.T) {
	got := wrk.Args(wrk.Load{
		URL: "http://192.0.2.1:80/600", Headers: []string{"Connection: close"}, Connections: 3, Threads: 2, Duration: 1200 * time.Millisecond, Script: "/run/x.lua",
	})
	want := []string{
		"--threads", "2", "--connections", "3", "--duration", "2s", "--header", "Connection: close", "--script", "/run/x.lua", "http://192.0.2.1:80/600",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}
