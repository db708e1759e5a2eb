package require

import (
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestPresent(t *testing.T) {
	none := func(string) bool { return false }
	hasProgram := func(s string) bool { return s == "sockperf" || s == "at" }
	hasOption := func(s string) bool { return s == "CONFIG_IPVLAN" }
	for what, want := range map[string]string{
		"the program sockperf":               "sockperf is on PATH",
		"the program iperf3":                 "",
		"ipvlan links (CONFIG_IPVLAN)":       "this kernel has CONFIG_IPVLAN",
		"bonds (CONFIG_IPVLAN, CONFIG_BOND)": "",
		"at least 2 processors":              "",
	} {
		if got := present(what, hasProgram, hasOption); got != want {
			t.Errorf("%q: %q, want %q", what, got, want)
		}
		if got := present(what, none, none); got != "" {
			t.Errorf("%q on a machine that has nothing: %q", what, got)
		}
	}
}

// recorder is a test whose end is looked at.
type recorder struct {
	testing.TB
	said string
}

func (*recorder) Helper()                     {}
func (*recorder) Name() string                { return "TestLater" }
func (r *recorder) Fatalf(f string, a ...any) { r.said += "fatal: " + fmt.Sprintf(f, a...); panic(r) }
func (r *recorder) Skipf(f string, a ...any)  { r.said += fmt.Sprintf(f, a...); panic(r) }
func (r *recorder) Fatal(a ...any)            { r.said += "fatal: " + fmt.Sprint(a...); panic(r) }

func TestNeed(t *testing.T) {
	for what, want := range map[string]string{
		"the program go":          "fatal: needs the program go: go is on PATH, so this is no reason to skip",
		"the program unheard-of":  "skip: TestLater: needs the program unheard-of, this machine lacks it",
		"a machine of two floors": "skip: TestLater: needs a machine of two floors, this machine lacks it",
	} {
		r := &recorder{TB: t}
		func() {
			defer func() { _ = recover() }()
			Need(r, what, false)
		}()
		if r.said != want {
			t.Errorf("%q: %q, want %q", what, r.said, want)
		}
		Need(t, what, true)
	}
	if kernelHas("CONFIG_OF_NO_KERNEL") || strings.Contains(present("CONFIG_OF_NO_KERNEL", hasProgram, kernelHas), "kernel") {
		t.Error("this kernel has an option that is made up")
	}
}

// Where more threads are busy than there are processors, one gets half of a processor at most.
func TestLeastShare(t *testing.T) {
	var done atomic.Bool
	for range 2 * runtime.NumCPU() {
		go func() {
			runtime.LockOSThread()
			for !done.Load() {
				_ = threadTime()
			}
		}()
	}
	defer done.Store(true)
	if share := leastShare(300 * time.Millisecond); share <= 0 || share > 0.6 {
		t.Errorf("beside two busy threads on each processor one gets %.2f of it", share)
	}
}
