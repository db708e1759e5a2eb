package simulate

import (
	"runtime"
	"sync"
)

// Parallel runs one trial for each index, on all CPUs. A trial writes only to its own slot, so the outcome depends
// on the seeds alone.
func Parallel[T any](n int, trial func(i int) T) []T {
	out, workers := make([]T, n), runtime.GOMAXPROCS(0)
	var wait sync.WaitGroup
	for w := range workers {
		wait.Go(func() {
			for i := w; i < n; i += workers {
				out[i] = trial(i)
			}
		})
	}
	wait.Wait()
	return out
}
