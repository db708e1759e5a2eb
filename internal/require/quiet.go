package require

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// quiet is the share of each processor that a test which compares times must get, and settles is how long Quiet waits for what other tests
// left to end. Programs that take only idle time leave more than 0.98 to others, and one busy loop a half.
const (
	quiet   = 0.9
	settles = 10 * time.Second
)

// Quiet skips the test where the processors have other work, which would decide what it finds: it compares times or searches for a rate.
// Such tests have WhenQuiet in their names, by which the scripts run them after all others, one at a time.
func Quiet(t testing.TB) {
	t.Helper()
	named(t, "WhenQuiet")
	err := Await(settles, "the processors have no other work", func() error {
		if share := leastShare(200 * time.Millisecond); share < quiet {
			return fmt.Errorf("a busy thread gets %.0f%% of one", 100*share)
		}
		return nil
	})
	if err != nil {
		t.Log(err)
	}
	Need(t, "processors without other work", err == nil)
}

// leastShare keeps a thread for each processor busy for a while, and is the share of that time that the one which got least has run.
func leastShare(span time.Duration) float64 {
	shares := make([]float64, runtime.NumCPU())
	var all sync.WaitGroup
	for i := range shares {
		all.Go(func() {
			runtime.LockOSThread() // and the thread ends with the goroutine
			began, before, passed := time.Now(), threadTime(), time.Duration(0)
			for passed < span {
				passed = time.Since(began)
			}
			shares[i] = float64(threadTime()-before) / float64(passed)
		})
	}
	all.Wait()
	least := 1.0
	for _, s := range shares {
		least = min(least, s)
	}
	return least
}

// threadTime is how long the calling thread has run.
func threadTime() time.Duration {
	var at unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &at) != nil {
		return 0 // each Linux has that clock
	}
	return time.Duration(at.Nano())
}
