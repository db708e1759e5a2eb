package kube

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// What is waited for is said once it takes long, in one line for all, with why and for how long at most.
func TestWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said []string
		w := &waits{say: func(line string) { said = append(said, line) }}
		first, second := w.begin("pod a", 2*time.Minute), w.begin("pod b", 2*time.Minute)
		for range 22 {
			time.Sleep(time.Second)
			first.still(errors.New("Insufficient cpu"))
			second.still(nil)
		}
		first.stop()
		stop := w.during("the way from x to y", 30*time.Second)
		time.Sleep(20 * time.Second)
		synctest.Wait()
		stop()
		second.stop()
		want := []string{
			"waiting for pod a and 1 more, 5s so far, 2m at most: Insufficient cpu",
			"waiting for pod a and 1 more, 20s so far, 2m at most: Insufficient cpu",
			"waiting for the way from x to y and 1 more, 15s so far, 30s at most",
		}
		if !slices.Equal(said, want) {
			t.Errorf("said %q, want %q", said, want)
		}
		(&waits{}).begin("nobody hears", time.Second).still(nil)
	})
}
