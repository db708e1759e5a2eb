package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestHides(t *testing.T) {
	bare := machine{command: func(string) bool { return false }, option: func(string) bool { return false }}
	full := machine{spaces: true, command: func(s string) bool { return s == "sockperf" || s == "at" }, option: func(s string) bool { return s == "CONFIG_IPVLAN" }}
	for _, c := range []struct {
		reason     string
		bare, full bool // is hiding something there
	}{
		{"skip: TestX: needs the right to make network namespaces (root), this machine lacks it", false, true},
		{"skip: TestX: needs the program sockperf, this machine lacks it", false, true},
		{"skip: TestX: needs the program iperf3, this machine lacks it", false, false},
		{"network ipvlan-l2 is unsupported: needs ipvlan links (CONFIG_IPVLAN)", false, true},
		{"needs bonds over ipvlan (CONFIG_IPVLAN, CONFIG_BONDING)", false, false},
		{"needs at least 2 processors", false, false},
		{"not today", true, true},
		{"", true, true},
	} {
		if got := hides(c.reason, bare) != ""; got != c.bare {
			t.Errorf("%q on a bare machine hides something: %v, want %v", c.reason, got, c.bare)
		}
		if got := hides(c.reason, full) != ""; got != c.full {
			t.Errorf("%q on a full machine hides something: %v, want %v", c.reason, got, c.full)
		}
	}
}

// events is one package with a pass, a failure, a skip and a line that is no event, and one that does not build.
const events = `{"Action":"run","Package":"p","Test":"TestGood"}
{"Action":"output","Package":"p","Test":"TestGood","Output":"    good_test.go:3: quiet\n"}
{"Action":"pass","Package":"p","Test":"TestGood","Elapsed":0}
{"Action":"output","Package":"p","Test":"TestBad","Output":"    bad_test.go:7: loud\n"}
{"Action":"fail","Package":"p","Test":"TestBad","Elapsed":0}
{"Action":"output","Package":"p","Test":"TestLater","Output":"=== RUN   TestLater\n"}
{"Action":"output","Package":"p","Test":"TestLater","Output":"    later_test.go:9: needs the program nobody-has: compares\n"}
{"Action":"output","Package":"p","Test":"TestLater","Output":"--- SKIP: TestLater (0.00s)\n"}
{"Action":"skip","Package":"p","Test":"TestLater","Elapsed":0}
{"Action":"output","Package":"p","Output":"left behind: a namespace\n"}
{"Action":"output","Package":"p","Output":"FAIL\tp\t0.1s\n"}
{"Action":"fail","Package":"p","Elapsed":0.1}
a complaint of the go command
{"ImportPath":"q","Action":"build-output","Output":"q.go:1: undefined: x\n"}
{"ImportPath":"q","Action":"build-fail"}
{"Action":"output","Package":"q","Output":"FAIL\tq [build failed]\n"}
{"Action":"fail","Package":"q","Elapsed":0}
`

func TestReport(t *testing.T) {
	list, again := filepath.Join(t.TempDir(), "skips"), filepath.Join(t.TempDir(), "again")
	var out bytes.Buffer
	w := bufio.NewWriter(&out)
	err := errors.Join(run(strings.NewReader(events), w, list, again), w.Flush())
	if err == nil || !strings.Contains(err.Error(), "1 tests failed, in p, q") {
		t.Errorf("error is %v", err)
	}
	for _, want := range []string{
		"bad_test.go:7: loud", "left behind: a namespace", "a complaint of the go command", "q.go:1: undefined: x",
		"  p TestLater: needs the program nobody-has: compares\n", "FAIL\tq [build failed]\n1 tests passed, 1 skipped, 1 failed; 2 packages\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("output lacks %q", want)
		}
	}
	if strings.Contains(out.String(), "quiet") {
		t.Error("output shows what a passing test logged")
	}
	if t.Failed() {
		t.Logf("output:\n%s", out.String())
	}
	kept, err := os.ReadFile(list)
	if err != nil || string(kept) != "Skipped: 1\n  p TestLater: needs the program nobody-has: compares\n" {
		t.Errorf("list of skips is %q, %v", kept, err)
	}
}

func TestReportOfAHiddenFault(t *testing.T) {
	skipped := `{"Action":"output","Package":"p","Test":"TestLater","Output":"    later_test.go:9: needs the program go\n"}
{"Action":"skip","Package":"p","Test":"TestLater"}
{"Action":"output","Package":"p","Output":"ok  \tp\t0.1s\n"}
{"Action":"pass","Package":"p"}
`
	err := run(strings.NewReader(skipped), bufio.NewWriter(io.Discard), "", "")
	if err == nil || !strings.Contains(err.Error(), "p TestLater must not be skipped: go is on PATH") {
		t.Errorf("error is %v", err)
	}
	if err := run(strings.NewReader(strings.ReplaceAll(skipped, "needs the program go", "needs the program nobody-has")), bufio.NewWriter(io.Discard), "", ""); err != nil {
		t.Errorf("a skip with a good reason fails: %v", err)
	}
}

// failures are the events of packages that fail in different ways.
const (
	oneFails = `{"Action":"fail","Package":"p","Test":"TestBad/one","Elapsed":0}
{"Action":"fail","Package":"p","Test":"TestBad/two","Elapsed":0}
{"Action":"fail","Package":"p","Test":"TestBad","Elapsed":0}
{"Action":"fail","Package":"p","Test":"TestWorse","Elapsed":0}
{"Action":"fail","Package":"p","Elapsed":0}
`
	leaks = `{"Action":"pass","Package":"l","Test":"TestGood","Elapsed":0}
{"Action":"fail","Package":"l","Elapsed":0}
`
	dies = `{"Action":"fail","Package":"d","Test":"TestBad","Elapsed":0}
{"Action":"output","Package":"d","Test":"TestUnderWay","Output":"panic: test timed out\n"}
{"Action":"fail","Package":"d","Elapsed":0}
`
	unbuilt = `{"ImportPath":"q","Action":"build-fail"}
{"Action":"fail","Package":"q","Elapsed":0}
`
)

func TestAgain(t *testing.T) {
	for _, c := range []struct{ events, want string }{
		{oneFails, "p ^(TestBad|TestWorse)$\n"},
		{leaks, "l .\n"},
		{dies, "d .\n"},
		{oneFails + leaks + dies, "p ^(TestBad|TestWorse)$\nl .\nd .\n"},
		{oneFails + unbuilt, ""},
		{leaks + strings.ReplaceAll(oneFails, `"p"`, `"a"`) + oneFails + strings.ReplaceAll(oneFails, `"p"`, `"b"`), ""},
	} {
		file := filepath.Join(t.TempDir(), "again")
		if err := run(strings.NewReader(c.events), bufio.NewWriter(io.Discard), "", file); err == nil {
			t.Errorf("%q: no error", c.events)
		}
		got, err := os.ReadFile(file)
		if err != nil || string(got) != c.want {
			t.Errorf("%q: try %q again (%v), want %q", c.events, got, err, c.want)
		}
	}
}
