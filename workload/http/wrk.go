package http

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"sync"
	"time"

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
	opened time.Time

	mu     sync.Mutex
	failed error    // why the client is of no more use
	last   *outcome // is added to the totals when it is known that it counts
	totals workload.Totals
	sum    *latency.Histogram
}

// outcome is a burst that waits to be counted.
type outcome struct {
	burst     workload.Burst
	latencies []wrk.Count
}

// dialWrk readies a client. That the server answers is found out now, but wrk connects anew in each burst.
func dialWrk(ctx context.Context, p result.Params, server netip.AddrPort, cpu int) (workload.Client, error) {
	fail := func(err error) error { return fmt.Errorf("http: load by wrk to %v: %w", server, err) }
	home, err := daemon.Open(wrkRoom)
	if err != nil {
		return nil, fail(err)
	}
	c := &wrkClient{params: p, server: server, cpu: cpu, home: home, opened: time.Now(), sum: latency.NewHistogram()}
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

// Burst implements workload.Client. It is at least as long as was asked for, and has no warm-up but that of its beginning: wrk
// counts in whole seconds, and from its start. A number of transactions can't be had of it; the burst then lasts a second.
func (c *wrkClient) Burst(spec workload.BurstSpec) (workload.Burst, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fail := func(err error) (workload.Burst, error) {
		return workload.Burst{}, fmt.Errorf("http: load by wrk to %v: %w", c.server, err)
	}
	if c.failed != nil {
		return fail(c.failed)
	}
	if spec.Duration < 0 || spec.Transactions < 0 || spec.Warmup < 0 || spec.Deadline < 0 || spec.Duration == 0 && spec.Transactions == 0 {
		return fail(fmt.Errorf("a burst of %v, %d transactions, warm-up %v and deadline %v: it takes a duration, and nothing negative",
			spec.Duration, spec.Transactions, spec.Warmup, spec.Deadline))
	}
	c.settle(spec.DropLast)
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
	c.last = last
	return last.burst, nil
}

// run has wrk make the load once.
func (c *wrkClient) run(ctx context.Context, length, deadline time.Duration) (*outcome, error) {
	begin := time.Now()
	ran, err := c.home.Measure(ctx, daemon.Spec{
		Path: wrk.Program, CPUs: daemon.Pin(c.cpu),
		Args: wrk.Args(wrk.Load{
			URL: "http://" + c.server.String() + "/" + fileName(c.params), Headers: headers(c.params, c.server), Connections: c.params.Connections,
			Duration: length, Timeout: deadline, Script: filepath.Join(daemon.Folder, scriptFile),
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
	last := &outcome{latencies: report.Latencies, burst: workload.Burst{
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

// settle adds the last burst to the totals, or drops it.
func (c *wrkClient) settle(drop bool) {
	last := c.last
	c.last = nil
	if last == nil || drop {
		return
	}
	b, t := last.burst, &c.totals
	t.Transactions, t.Bytes, t.Errors = t.Transactions+b.Transactions, t.Bytes+b.Bytes, t.Errors+b.Errors
	for _, l := range last.latencies {
		c.sum.Record(int64(l.Latency), l.Requests)
	}
	t.Series = append(t.Series, result.Second{
		At: b.Start.Sub(c.opened).Seconds(), Span: b.Duration.Seconds(), Transactions: b.Transactions, Bytes: b.Bytes,
	})
}

// Collect implements workload.Client.
func (c *wrkClient) Collect(dropLast bool) (workload.Totals, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settle(dropLast)
	totals := c.totals
	c.totals = workload.Totals{}
	var err error
	if totals.Histogram, err = c.sum.Encode(); err != nil {
		return totals, fmt.Errorf("http: %w", err)
	}
	c.sum.Reset()
	return totals, nil
}

// Close implements workload.Client. A burst that is under way ends with an error.
func (c *wrkClient) Close() error {
	err := c.home.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failed == nil {
		c.failed = daemon.ErrClosed
	}
	return err
}
