package require

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// quiet is the share of the processors' time that may go to others while a test compares times, and settles is how long Quiet waits for
// what other tests left to end.
const (
	quiet   = 0.1
	settles = 10 * time.Second
)

// Quiet skips the test where the processors have other work, which would decide what it finds: it compares times or searches for a rate.
// Such tests have WhenQuiet in their names, by which the scripts run them after all others, one at a time.
func Quiet(t testing.TB) {
	t.Helper()
	named(t, "WhenQuiet")
	err := Await(settles, "the processors have no other work", func() error {
		before := readProcessors(t)
		time.Sleep(300 * time.Millisecond)
		if share := readProcessors(t).busySince(before); share > quiet {
			return fmt.Errorf("%.0f%% of their time is taken", 100*share)
		}
		return nil
	})
	if err != nil {
		t.Log(err)
	}
	Need(t, "processors without other work", err == nil)
}

// processors is the time that all processors together have spent since the machine booted, in clock ticks: working, and in all.
type processors struct{ busy, all uint64 }

// readProcessors reads the first line of /proc/stat: proc(5) has its fields.
func readProcessors(t testing.TB) (p processors) {
	t.Helper()
	text, err := os.ReadFile("/proc/stat")
	NoError(t, err)
	line, _, _ := strings.Cut(string(text), "\n")
	var user, nice, system, idle, wait, irq, softirq, steal uint64
	_, err = fmt.Sscanf(line, "cpu %d %d %d %d %d %d %d %d", &user, &nice, &system, &idle, &wait, &irq, &softirq, &steal)
	NoError(t, err)
	p.busy = user + nice + system + irq + softirq + steal
	p.all = p.busy + idle + wait
	return p
}

// busySince is the share of the time since an earlier reading that the processors worked, from 0 to 1.
func (p processors) busySince(earlier processors) float64 {
	if p.all <= earlier.all {
		return 0
	}
	return float64(p.busy-earlier.busy) / float64(p.all-earlier.all)
}
