// Package exposition serves the metrics of a run while it is under way.
package exposition

import (
	"bytes"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"netdelta/experiment"
	"netdelta/report/openmetrics"
	"netdelta/result"
)

// Path is where metrics are asked for.
const Path = "/metrics"

// Limits of a server that only a neighbour on this machine speaks to.
const (
	patience  = 10 * time.Second
	maxHeader = 16 << 10
)

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
	e.seen.Run, e.seen.Trials = run, trials
	return known
}

// snapshot is what is known now.
func (e *exposition) snapshot() openmetrics.Snapshot {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.seen
}

// ServeHTTP implements http.Handler.
func (e *exposition) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// A page from elsewhere may have its own name lead to this machine's loopback. It is told nothing.
	if !IsLoopback(hostOf(r.Host)) {
		http.Error(w, "metrics are for this machine: ask for "+Path+" at 127.0.0.1", http.StatusForbidden)
		return
	}
	var page bytes.Buffer
	if err := openmetrics.Write(&page, e.snapshot()); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", openmetrics.ContentType)
	w.Header().Set("Content-Length", strconv.Itoa(page.Len()))
	_, _ = w.Write(page.Bytes()) // who asked may have gone
}

// hostOf is the host of an address with or without a port.
func hostOf(address string) string {
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return strings.Trim(address, "[]")
}

// IsLoopback says whether a host is this machine's loopback, by its name alone: it resolves nothing.
func IsLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	address, err := netip.ParseAddr(host)
	return err == nil && address.Unmap().IsLoopback()
}

// Serve has a run's progress and figures served at a socket until what it returns is called, which closes the socket and waits for the
// server to end.
func Serve(config *experiment.Config, listener net.Listener) (stop func() error) {
	e := &exposition{Judge: config.Judge, shown: config.Progress, seen: openmetrics.Snapshot{Run: config.Run}}
	config.Judge, config.Progress = e, e
	mux := http.NewServeMux()
	mux.Handle("GET "+Path, e)
	server := &http.Server{
		Handler: mux, ReadHeaderTimeout: patience, ReadTimeout: patience, WriteTimeout: patience,
		IdleTimeout: 6 * patience, MaxHeaderBytes: maxHeader,
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	return func() error {
		err := server.Close()
		if served := <-ended; !errors.Is(served, http.ErrServerClosed) {
			err = errors.Join(err, served)
		}
		return err
	}
}
