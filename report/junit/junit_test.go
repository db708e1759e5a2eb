package junit

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"netdelta/internal/golden"
	"netdelta/internal/leak"
	"netdelta/report/reporttest"
	"netdelta/result"
)

func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }

// parse reads a document back, and fails if it is not well formed to its last byte.
func parse(t *testing.T, text string) document {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(text))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("not well formed: %v\n%s", err, text)
		}
	}
	var read document
	if err := xml.Unmarshal([]byte(text), &read); err != nil {
		t.Fatal(err)
	}
	tests, failures := 0, 0
	for _, s := range read.Suites {
		failed, skips := 0, 0
		for _, c := range s.Cases {
			if c.Name == "" || c.Class == "" {
				t.Errorf("a case of %s has the name %q and the class %q", s.Name, c.Name, c.Class)
			}
			if c.Failure != nil {
				failed++
			}
			if c.Skipped != nil {
				skips++
			}
		}
		if s.Tests != len(s.Cases) || s.Failures != failed || s.Skipped != skips {
			t.Errorf("%s counts %d, %d, %d of %d, %d, %d", s.Name, s.Tests, s.Failures, s.Skipped, len(s.Cases), failed, skips)
		}
		tests, failures = tests+s.Tests, failures+s.Failures
	}
	if read.Tests != tests || read.Failures != failures {
		t.Errorf("the document counts %d and %d of %d and %d", read.Tests, read.Failures, tests, failures)
	}
	return read
}

func run(t *testing.T, r result.Run, trials []result.Trial) string {
	t.Helper()
	var out bytes.Buffer
	if err := Write(&out, r, result.List(trials)); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func comparison(t *testing.T, c result.Comparison) string {
	t.Helper()
	var out bytes.Buffer
	if err := WriteComparison(&out, c); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestRun(t *testing.T) {
	w := reporttest.Usual()
	w.Builds, w.Rounds = 2, 1
	r, trials := w.Measure(t)
	r.Checks = []result.Check{
		{Trial: trials[3].ID(), Check: "path", Expected: "node0/eth0", Observed: "node0/eth1"},
		{Trial: trials[4].ID(), Check: "disturbed", Expected: "at most 25% of bursts disturbed", Observed: "2 of 6"},
		{Trial: trials[3].ID(), Check: "loss", OK: true, Expected: "0 datagrams lost", Observed: "none"},
	}
	r.Claims = []result.Claim{
		{ID: "dearest", Says: "VXLAN costs most", Verdict: "confirmed", Measured: "+31%"},
		{ID: "free", Says: "a bridge costs nothing", Published: "0%", Verdict: "contradicted", Measured: "+12%"},
		{ID: "ours", Says: "a bridge costs less than 5%", Verdict: "contradicted", Measured: "+12%"},
		{ID: "wide", Says: "jumbo frames help", Verdict: "not-tested"},
	}
	text := run(t, r, trials)
	golden.Check(t, "testdata/run.xml", text)
	d := parse(t, text)
	if len(d.Suites) != 2 || d.Suites[0].Failures != 1 || d.Suites[0].Skipped != 1 || d.Suites[0].Tests != len(trials)+1 || d.Suites[1].Failures != 1 || d.Suites[1].Skipped != 2 {
		t.Errorf("the suites are %+v", d.Suites)
	}
}

func TestComparisons(t *testing.T) {
	for name, c := range reporttest.Comparisons(t) {
		text := comparison(t, c)
		golden.Check(t, filepath.Join("testdata", name+".xml"), text)
		d := parse(t, text)
		if bad := c.Verdict == "regressed" || c.Verdict == "nothing"; bad != (d.Failures > 0) {
			t.Errorf("%s is %s, and has %d failures", name, c.Verdict, d.Failures)
		}
	}
}

func TestHostileNames(t *testing.T) {
	r, trials := reporttest.Spoiled(t)
	text := run(t, r, trials)
	parse(t, text)
	for _, bad := range []string{"<script", "\x1b", "\x07", "\u202e"} {
		if strings.Contains(text, bad) {
			t.Errorf("%q comes through", bad)
		}
	}
}

func FuzzNames(f *testing.F) {
	for _, seed := range []string{"vxlan", "<a>", "&amp;", "]]>", "\x00", "\ufffe", "\"'", reporttest.Hostile(), "\xff\xfe", "a\nb\tc"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		r := result.Run{
			Run: name, Study: name, Checks: []result.Check{{Trial: name, Check: name, Expected: name, Observed: name}},
			Claims: []result.Claim{{ID: name, Says: name, Verdict: name, Measured: name}},
		}
		d := parse(t, run(t, r, nil))
		if got, want := d.Suites[0].Cases[0].Name, clean(name+": "+name); got != want {
			t.Errorf("%q comes back as %q", want, got)
		}
		if got, want := d.Suites[0].Cases[0].Failure.Text, clean("expected "+name+", observed "+name); got != want {
			t.Errorf("%q comes back as %q", want, got)
		}
	})
}

func TestErrorOfTheWriter(t *testing.T) {
	if err := Write(reporttest.Full{}, result.Run{}, nil); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("%v", err)
	}
	if err := WriteComparison(reporttest.Full{}, result.Comparison{}); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("%v", err)
	}
}
