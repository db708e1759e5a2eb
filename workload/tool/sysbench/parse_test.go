package sysbench_test

import (
	"errors"
	"math"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"netdelta/internal/require"
	"netdelta/workload/tool/sysbench"
)

// parse reads what a real run printed.
func parse(t *testing.T, name string) (sysbench.Report, error) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	return sysbench.Parse(text)
}

func mustParse(t *testing.T, name string) sysbench.Report {
	t.Helper()
	r, err := parse(t, name)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestParse(t *testing.T) {
	r := mustParse(t, "read-write")
	if r.Version != "1.0.20" || r.Threads != 8 || r.Target != 0 {
		t.Errorf("version %q, %d threads, target %v", r.Version, r.Threads, r.Target)
	}
	if r.Transactions != 1860 || r.Errors != 0 || r.Reconnects != 0 {
		t.Errorf("counts %+v", r)
	}
	if r.Time != 3010800*time.Microsecond {
		t.Errorf("time %v", r.Time)
	}
	if r.Min != 1.05e6 || r.Max != 80.74e6 || math.Abs(r.Mean-24021.57e6/1860) > 1 || r.Percentile != 99 || r.AtPercentile != 38.94e6 {
		t.Errorf("latencies %v %v %v, %v at %v", r.Min, r.Mean, r.Max, r.AtPercentile, r.Percentile)
	}
	if len(r.Seconds) != 3 || r.Seconds[1] != (sysbench.Second{At: 2, TPS: 566.04}) {
		t.Errorf("seconds %+v", r.Seconds)
	}
	if first := r.Buckets[0]; first != (sysbench.Bucket{Place: 386, Count: 1}) || r.Lowest() != r.Min-5000 {
		t.Errorf("first bucket %+v, lowest %v", first, r.Lowest())
	}
}

// TestDistribution holds what follows from the distribution against what sysbench says itself.
func TestDistribution(t *testing.T) {
	for _, name := range []string{"read-write", "update-index", "rate", "deadlocks", "events"} {
		r := mustParse(t, name)
		var count int64
		var sum float64
		var values []int64
		r.Each(func(ns, n int64) {
			count += n
			sum += float64(ns * n)
			values = append(values, ns)
		})
		if count != r.Transactions {
			t.Errorf("%s: the distribution has %d of %d transactions", name, count, r.Transactions)
		}
		if !slices.IsSorted(values) {
			t.Errorf("%s: latencies are not in order", name)
		}
		if mean := sum / float64(count); math.Abs(mean/r.Mean-1) > 0.01 {
			t.Errorf("%s: the mean by the distribution is %v, sysbench says %v", name, mean, r.Mean)
		}
		// sysbench takes the middle of the bucket.
		if q := r.Quantile(0.99); math.Abs(q/r.AtPercentile-1) > 0.03 && r.Transactions > 100 {
			t.Errorf("%s: the 99th percentile by the distribution is %v, sysbench says %v", name, q, r.AtPercentile)
		}
		if a, b, c := r.Quantile(0), r.Quantile(0.5), r.Quantile(1); !(a < b && b < c) {
			t.Errorf("%s: quantiles %v, %v, %v", name, a, b, c)
		}
	}
	if r := mustParse(t, "no-histogram"); r.Quantile(0.5) != 0 || r.Lowest() != r.Min || r.Percentile != 95 || len(r.Seconds) != 1 {
		t.Errorf("without a distribution: %+v", r)
	}
	if r := mustParse(t, "deadlocks"); r.Errors != 1410 || r.Seconds[0].Errors != 557.05 {
		t.Errorf("%d errors, in the first second %v", r.Errors, r.Seconds[0].Errors)
	}
	if r := mustParse(t, "rate"); r.Target != 100 || len(r.Seconds) != 3 {
		t.Errorf("target %v, %d seconds", r.Target, len(r.Seconds))
	}
}

func TestFailures(t *testing.T) {
	for name, want := range map[string]string{
		"refused":  "unable to connect to MySQL server on host '127.0.0.1', port 3999, aborting...; error 2002: Can't connect to server on '127.0.0.1' (115)",
		"no-table": "mysql_stmt_prepare() failed; MySQL error: 1146",
		"died":     "Lost connection to server during query",
	} {
		_, err := parse(t, name)
		var failed *sysbench.FailedError
		if !errors.As(err, &failed) || !strings.Contains(failed.Words, want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	whole, err := os.ReadFile("testdata/read-write.txt")
	if err != nil {
		t.Fatal(err)
	}
	text := string(whole)
	for name, c := range map[string]struct {
		text, want string
	}{
		"nothing":         {"", "no count of transactions"},
		"cut off":         {text[:len(text)/2], "no count of transactions"},
		"of cpu":          {"sysbench 1.0.20\n\nCPU speed:\n    events per second:  1000.00\n", "no count of transactions"},
		"not a count":     {strings.Replace(text, "1860   (617", "many   (617", 1), `not a count: "many"`},
		"not a number":    {strings.Replace(text, "tps: 457.40", "tps: nan", 1), `sysbench's output: 13: not a number: "nan"`},
		"negative":        {strings.Replace(text, "1.05", "-1.05", 1), "not a number"},
		"seconds go back": {strings.Replace(text, "[ 2s ]", "[ 1s ]", 1), "seconds don't rise"},
	} {
		if _, err := sysbench.Parse([]byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		f.Fatalf("no seeds: %v", err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := sysbench.Parse([]byte(text))
		if err != nil {
			if r.Transactions != 0 || r.Buckets != nil {
				t.Errorf("an error and a report: %+v", r)
			}
			return
		}
		if r.Time <= 0 || r.Transactions < 0 {
			t.Errorf("%+v", r)
		}
		for _, q := range []float64{r.Quantile(0), r.Quantile(0.5), r.Quantile(1), r.Lowest(), r.Mean} {
			if q < 0 || math.IsNaN(q) {
				t.Errorf("a latency of %v", q)
			}
		}
	})
}

func TestArgs(t *testing.T) {
	r := sysbench.Run{
		Test: "oltp_read_write", Server: netip.MustParseAddrPort("[fd00::1]:3306"), User: "u", Database: "d",
		Tables: 4, Rows: 25000, Threads: 8, Time: 1500 * time.Millisecond,
	}
	want := "oltp_read_write --db-driver=mysql --mysql-user=u --mysql-db=d --mysql-host=fd00::1 --mysql-port=3306 --tables=4 " +
		"--table-size=25000 --threads=8 --time=2 --events=0 --report-interval=1 --histogram=on --percentile=99 run"
	if got := strings.Join(r.Args(), " "); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	r.Socket = "/run/s"
	if got := strings.Join(r.Prepare(), " "); !strings.Contains(got, "--mysql-socket=/run/s") || strings.Contains(got, "host") || !strings.HasSuffix(got, " --auto-inc=off prepare") {
		t.Errorf("%s", got)
	}
}

// What is written to a file of arguments is what sysbench reads there.
func TestOption(t *testing.T) {
	dir := t.TempDir()
	script, file := filepath.Join(dir, "say.lua"), filepath.Join(dir, "options")
	if err := os.WriteFile(script, []byte(`function prepare() print("[" .. sysbench.opt.mysql_password .. "]") end`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := sysbench.Option("mysql-password", `a" b'`); err == nil || strings.Contains(err.Error(), `a"`) {
		t.Errorf("quotes of both kinds: %v", err)
	}
	program := require.Tool(t, "sysbench")
	for _, value := range []string{
		"", "plain", "two words", " around ", "a,b", "#a", "a#b", `a"b`, `"a b"`, "it's", `\`, `a\b\`, `a"b'c`, `a"b'`, "=", "a=b", "--help", "%s", "$x", `it"s \ #4$x%,`, "ä",
	} {
		line, err := sysbench.Option("mysql-password", value)
		if err == nil {
			err = os.WriteFile(file, []byte(line), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		said, err := exec.Command(program, script, "--db-driver=mysql", "--config-file="+file, "prepare").CombinedOutput()
		if err != nil || !strings.Contains(string(said), "["+value+"]") {
			t.Errorf("%q is read as %s, %v", value, said, err)
		}
	}
}
