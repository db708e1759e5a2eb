package http

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"netdelta/engine"
	"netdelta/internal/daemon"
	"netdelta/internal/latency"
	"netdelta/result"
	"netdelta/unit"
	"netdelta/workload"
	"netdelta/workload/tool/wrk"
)

const (
	// wrkBurst is the shortest that wrk takes: it counts in whole seconds.
	wrkBurst = time.Second
	// wrkRoom is what the home of a client has to hold: a script.
	wrkRoom = unit.MiB
	// wrkSlack is what a burst may take beyond its length when no deadline is given.
	wrkSlack = 30 * time.Second
	// scriptFile is where the script is.
	scriptFile = "netdelta.lua"
)

func wrkNeeds() workload.Program { return workload.Program{Name: wrk.Program, Package: wrk.Program} }

// wrkClient runs wrk for each burst.
type wrkClient struct {
	params result.Params
	server netip.AddrPort
	cpu    int
	home   *daemon.Home

	mu     sync.Mutex
	failed error // why the client is of no more use
	tally  workload.Tally
}

// outcome is what a run of wrk measured.
type outcome struct {
	burst     engine.Burst
	latencies []wrk.Count
}

// dialWrk readies a client. That the server answers is found out now, but wrk connects anew in each burst.
func dialWrk(ctx context.Context, p result.Params, server netip.AddrPort, cpu int) (engine.Client, error) {
	fail := func(err error) error { return fmt.Errorf("http: load by wrk to %v: %w", server, err) }
	home, err := daemon.Open(wrkRoom)
	if err != nil {
		return nil, fail(err)
	}
	c := &wrkClient{params: p, server: server, cpu: cpu, home: home, tally: workload.Tally{Opened: time.Now()}}
	err = home.Write(scriptFile, []byte(wrk.Script), 0o644, "")
	if err == nil {
		err = reach(ctx, server)
	}
	if err == nil {
		_, err = daemon.Look(wrk.Program)
	}
	if err != nil {
		return nil, errors.Join(fail(err), home.Close())
	}
	return c, nil
}

// reach connects to the server, and leaves it again.
func reach(ctx context.Context, server netip.AddrPort) error {
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", server.String())
	if err != nil {
		return err
	}
	return c.Close()
}

// Burst implements engine.Client. It is at least as long as was asked for, and has no warm-up but that of its beginning: wrk
// counts in whole seconds, and from its start. A number of transactions can't be had of it; the burst then lasts a second.
func (c *wrkClient) Burst(spec engine.BurstSpec) (engine.Burst, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fail := func(err error) (engine.Burst, error) {
		return engine.Burst{}, fmt.Errorf("http: load by wrk to %v: %w", c.server, err)
	}
	if c.failed != nil {
		return fail(c.failed)
	}
	if err := spec.Check(); err != nil {
		return fail(err)
	}
	c.tally.Settle(spec.DropLast)
	length := max(spec.Duration, wrkBurst)
	deadline := spec.Deadline
	if deadline == 0 {
		deadline = length + wrkSlack
	}
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	last, err := c.run(ctx, length, deadline)
	if err != nil {
		c.failed = err
		return fail(err)
	}
	c.tally.Take(last.burst, workload.More{Latencies: last.record})
	return last.burst, nil
}

// run has wrk make the load once.
func (c *wrkClient) run(ctx context.Context, length, deadline time.Duration) (*outcome, error) {
	begin := time.Now()
	ran, err := c.home.Measure(ctx, daemon.Spec{
		Path: wrk.Program, CPUs: daemon.Pin(c.cpu),
		Args: wrk.Args(wrk.Load{
			URL: "http://" + c.server.String() + "/" + fileName(c.params), Headers: headers(c.params, c.server), Connections: c.params.Connections,
			Duration: length, Timeout: deadline, Script: c.home.Path(scriptFile),
		}),
	})
	span := time.Since(begin)
	if err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			err = fmt.Errorf("burst not over after %v: %w", deadline, err)
		}
		return nil, err
	}
	report, err := wrk.Parse(ran.Output)
	if err != nil {
		return nil, err
	}
	good := report.Requests - report.Errors.Status
	if good <= 0 {
		return nil, fmt.Errorf("none of %d requests was answered as asked: %+v", report.Requests, report.Errors)
	}
	sent := report.Requests * int64(len(request(c.params, c.server)))
	last := &outcome{latencies: report.Latencies, burst: engine.Burst{
		Start: begin, Duration: report.Duration, Span: span,
		Transactions: good, Bytes: int64(report.Bytes) + sent, Errors: report.Errors.Sum(),
		CPU: ran.CPU, Switches: ran.Switches, Work: report.Requests, Moved: int64(report.Bytes) + sent,
	}}
	last.describe()
	return last, nil
}

// describe computes what a burst says of its latencies and of its throughput.
func (w *outcome) describe() {
	b := &w.burst
	b.Throughput = float64(b.Bytes) * 8 / b.Duration.Seconds()
	var n int64
	var sum float64
	for _, l := range w.latencies {
		n += l.Requests
		sum += float64(l.Latency) * float64(l.Requests)
	}
	if n == 0 {
		return
	}
	b.Mean = sum / float64(n)
	b.Min, b.Max = float64(w.latencies[0].Latency), float64(w.latencies[len(w.latencies)-1].Latency)
	b.P50, b.P90, b.P99 = w.quantile(n, 0.5), w.quantile(n, 0.9), w.quantile(n, 0.99)
}

// record adds the latencies to a histogram.
func (w *outcome) record(h *latency.Histogram) {
	for _, l := range w.latencies {
		h.Record(int64(l.Latency), l.Requests)
	}
}

// quantile is the latency that a share of the n requests did not exceed. wrk counts in whole microseconds: within one, the
// requests are taken to be spread evenly.
func (w *outcome) quantile(n int64, share float64) float64 {
	rank := share * float64(n)
	for _, l := range w.latencies {
		if rank <= float64(l.Requests) {
			return float64(l.Latency) + (rank/float64(l.Requests)-0.5)*float64(time.Microsecond)
		}
		rank -= float64(l.Requests)
	}
	return w.burst.Max
}

// Collect implements engine.Client.
func (c *wrkClient) Collect(dropLast bool) (engine.Totals, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	totals, err := c.tally.Collect(dropLast)
	if err != nil {
		return totals, fmt.Errorf("http: %w", err)
	}
	return totals, nil
}

// Close implements engine.Client. A burst that is under way ends with an error.
func (c *wrkClient) Close() error {
	err := c.home.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failed == nil {
		c.failed = daemon.ErrClosed
	}
	return err
}
