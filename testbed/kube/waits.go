package kube

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"netdelta/unit"
)

const (
	// saidAfter is how long something is waited for before that is said, and saidEvery how often it is said again.
	saidAfter = 5 * time.Second
	saidEvery = 15 * time.Second
)

// waits say what is waited for, once it takes long: one line for all that is waited for at the same time. It is safe for concurrent use.
type waits struct {
	say func(string) // nil for nobody

	mu   sync.Mutex
	all  []string // what is waited for, in the order in which it began
	last time.Time
}

// begin notes that something is waited for, at most so long.
func (w *waits) begin(what string, most time.Duration) *wait {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, what)
	return &wait{of: w, what: what, most: most, began: time.Now()}
}

// wait is one thing that is waited for.
type wait struct {
	of    *waits
	what  string
	most  time.Duration
	began time.Time
}

// still says that it goes on, where it is time to: why is the reason, nil for none.
func (w *wait) still(why error) {
	w.of.mu.Lock()
	defer w.of.mu.Unlock()
	waited := time.Since(w.began)
	if w.of.say == nil || waited < saidAfter || !w.of.last.IsZero() && time.Since(w.of.last) < saidEvery {
		return
	}
	w.of.last = time.Now()
	text := "waiting for " + w.what
	if n := len(w.of.all) - 1; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	text += fmt.Sprintf(", %s so far, %s at most", unit.FormatDuration(waited.Round(time.Second)), unit.FormatDuration(w.most))
	if why != nil {
		text += ": " + why.Error()
	}
	w.of.say(text)
}

// stop notes that it is over.
func (w *wait) stop() {
	w.of.mu.Lock()
	defer w.of.mu.Unlock()
	if i := slices.Index(w.of.all, w.what); i >= 0 {
		w.of.all = slices.Delete(w.of.all, i, i+1)
	}
}

// during has it said, while something that can't be looked at takes long, that it is waited for; until stop is called.
func (w *waits) during(what string, most time.Duration) (stop func()) {
	one, ended := w.begin(what, most), make(chan struct{})
	go func() {
		every := time.NewTicker(saidAfter)
		defer every.Stop()
		for {
			select {
			case <-ended:
				return
			case <-every.C:
				one.still(nil)
			}
		}
	}()
	return func() { close(ended); one.stop() }
}
