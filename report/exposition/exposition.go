// Package exposition serves the metrics of a run while it is under way.
package exposition

import (
	"bytes"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"

	"netdelta/experiment"
	"netdelta/report/loopback"
	"netdelta/report/openmetrics"
	"netdelta/result"
)

// Path is where metrics are asked for.
const Path = "/metrics"

// exposition serves the metrics of a run under way. It stands between the experiment and those who watch and judge it, and takes down
// what it sees: figures are computed once after each build, when nothing is measured, and a reader only has them printed.
type exposition struct {
	experiment.Judge
	shown experiment.Progress

	mu   sync.Mutex
	seen openmetrics.Snapshot
}

// Update implements experiment.Progress.
func (e *exposition) Update(s experiment.Status) {
	e.shown.Update(s)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.seen.Progress = &openmetrics.Progress{
		Build: s.Build, Round: s.Round, Rounds: s.Rounds, Cells: s.Cells, Open: s.Open, Elapsed: s.Elapsed, Budget: s.Budget,
	}
}

// Settled implements experiment.Judge.
func (e *exposition) Settled(run result.Run, trials []result.Trial) map[string]bool {
	known := e.Judge.Settled(run, trials)
	// The experiment goes on with its record while a reader has this one.
	run.Notes, trials = slices.Clone(run.Notes), slices.Clone(trials)
	e.Judge.Conclude(&run, trials)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.seen.Run, e.seen.Trials = run, result.List(trials)
	return known
}

// snapshot is what is known now.
func (e *exposition) snapshot() openmetrics.Snapshot {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.seen
}

// ServeHTTP implements http.Handler.
func (e *exposition) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	var page bytes.Buffer
	if err := openmetrics.Write(&page, e.snapshot()); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", openmetrics.ContentType)
	w.Header().Set("Content-Length", strconv.Itoa(page.Len()))
	_, _ = w.Write(page.Bytes()) // who asked may have gone
}

// Serve has a run's progress and figures served at a socket until what it returns is called, which closes the socket and waits for the
// server to end.
func Serve(config *experiment.Config, listener net.Listener) (stop func() error) {
	e := &exposition{Judge: config.Judge, shown: config.Progress, seen: openmetrics.Snapshot{Run: config.Run}}
	config.Judge, config.Progress = e, e
	mux := http.NewServeMux()
	mux.Handle("GET "+Path, e)
	return loopback.Serve(listener, mux, 0)
}
