package experiment

import (
	"sync"

	"netdelta/result"
)

// writer appends trials to the journal in the background, in order: each append waits for the disk, and measuring need not.
type writer struct {
	trials chan result.Trial
	done   chan struct{}

	mu  sync.Mutex
	err error
}

// pendingTrials is how many trials may wait for the disk before measuring waits too.
const pendingTrials = 1024

func startWriter(folder *result.Folder) *writer {
	w := &writer{trials: make(chan result.Trial, pendingTrials), done: make(chan struct{})}
	go func() {
		defer close(w.done)
		for t := range w.trials {
			// After a failure nothing more is written: a later trial must not stand in the journal without an earlier one.
			if w.failed() == nil {
				w.fail(folder.Append(t))
			}
		}
	}()
	return w
}

func (w *writer) append(t result.Trial) { w.trials <- t }

// failed gives the error that ended writing, if one did.
func (w *writer) failed() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

func (w *writer) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = err
}

// close waits until all is written.
func (w *writer) close() error {
	close(w.trials)
	<-w.done
	return w.failed()
}
