package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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
	"netdelta/testbed/lab/rootless"
)

// metricsPath is where metrics are asked for.
const metricsPath = "/metrics"

// Limits of a server that only a neighbour on this machine speaks to.
const (
	metricsPatience  = 10 * time.Second
	metricsMaxHeader = 16 << 10
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
	if !isLoopback(hostOf(r.Host)) {
		http.Error(w, "metrics are for this machine: ask for "+metricsPath+" at 127.0.0.1", http.StatusForbidden)
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

// isLoopback says whether a host is this machine's loopback, by its name alone: it resolves nothing.
func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	address, err := netip.ParseAddr(host)
	return err == nil && address.Unmap().IsLoopback()
}

// checkMetrics refuses an address that others could reach: metrics have no lock of their own. Exact says that instructions are
// counted, in guests that have no metrics.
func checkMetrics(address string, exact bool) error {
	host, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	switch {
	case exact:
		return usageError{errors.New("--metrics-listen has no meaning with --exact: there is nothing to see before the end")}
	case err != nil:
		return usageError{fmt.Errorf("--metrics-listen: %q is no address; write 127.0.0.1:PORT", address)}
	case !isLoopback(host):
		return usageError{fmt.Errorf("--metrics-listen: %s can be reached from other machines, and everyone who reaches it reads all; write 127.0.0.1:%s, and let a "+
			"proxy that asks for a password lead there", address, port)}
	}
	return nil
}

// listen opens the socket that metrics are asked for at; there is none for "".
func listen(ctx context.Context, address string) (net.Listener, error) {
	if address == "" {
		return nil, nil
	}
	if _, entered := rootless.Entered(); entered {
		return nil, errors.New("--metrics-listen: a lab of an ordinary user has a loopback of its own, which no other program reaches; run as root, or read " +
			metricsFile + " in the run folder at the end")
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("--metrics-listen: %w; choose another port, or 0 for any that is free", err)
	}
	return listener, nil
}

// serve answers at a socket until what it returns is called, which closes the socket and waits for the server to end.
func (e *exposition) serve(listener net.Listener) (stop func() error) {
	mux := http.NewServeMux()
	mux.Handle("GET "+metricsPath, e)
	server := &http.Server{
		Handler: mux, ReadHeaderTimeout: metricsPatience, ReadTimeout: metricsPatience, WriteTimeout: metricsPatience,
		IdleTimeout: 6 * metricsPatience, MaxHeaderBytes: metricsMaxHeader,
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

// exposed has a run's progress and figures served as metrics, and returns what ends that.
func (env *environment) exposed(config *experiment.Config, listener net.Listener) (stop func() error) {
	fmt.Fprintf(env.err, "metrics: http://%s%s\n", listener.Addr(), metricsPath)
	e := &exposition{Judge: config.Judge, shown: config.Progress, seen: openmetrics.Snapshot{Run: config.Run}}
	config.Judge, config.Progress = e, e
	return e.serve(listener)
}
