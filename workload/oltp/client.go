package oltp

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"time"

	"netdelta/engine"
	"netdelta/internal/daemon"
	"netdelta/internal/latency"
	"netdelta/result"
	"netdelta/unit"
	"netdelta/workload"
	"netdelta/workload/tool/sysbench"
)

// client loads the first node by sysbench, which it starts for each burst.
type client struct {
	home  *daemon.Home
	node  netip.Addr
	cpus  []int
	run   sysbench.Run
	rate  float64       // transactions per second of the last run
	spent time.Duration // processor time of the burst's runs
	stale int64         // samples of figures of replication that are being cleared
	tally workload.Tally
	// foreign says that the database is the user's own: nothing is asked of it but transactions.
	foreign bool
}

var _ engine.Client = (*client)(nil)

// clientHome is the size of the client's home, in which it writes nothing.
const clientHome = unit.MiB

// dial opens a client. It returns when a transaction on each of its connections has come back.
func dial(ctx context.Context, p result.Params, at workload.Place) (engine.Client, error) {
	if err := check(p); err != nil {
		return nil, err
	}
	if len(at.Peers) == 0 {
		return nil, errors.New("oltp: a client needs the address of a node")
	}
	home, err := daemon.Open(clientHome)
	if err != nil {
		return nil, fmt.Errorf("oltp: %w", err)
	}
	c := &client{home: home, node: at.Peers[0], cpus: daemon.Pin(at.CPU), run: load()}
	c.run.Server = netip.AddrPortFrom(c.node, databasePort)
	c.ask(p)
	first := c.run
	first.Events = int64(first.Threads)
	if _, err = c.measure(ctx, first); err == nil {
		err = c.clear(ctx)
	}
	if err != nil {
		return nil, errors.Join(c.wrong(err), home.Close())
	}
	return c, nil
}

// ask has the client's runs be those of parameters.
func (c *client) ask(p result.Params) {
	c.run.Test = "oltp_" + p.Own.Or(parameters()).Word("mix")
	c.run.Threads = cmp.Or(p.Connections, Workload().Defaults.Connections)
}

// wrong says of an error whose it is.
func (c *client) wrong(err error) error {
	if c.foreign {
		return fmt.Errorf("oltp: database %s at %s: %w", c.run.Database, c.run.Server, err)
	}
	return fmt.Errorf("oltp: node 0 at %s: %w", c.run.Server, err)
}

// measure is one run of sysbench.
func (c *client) measure(ctx context.Context, run sysbench.Run) (sysbench.Report, error) {
	ran, err := c.home.Measure(ctx, daemon.Spec{Path: loadProgram, Args: run.Args(), CPUs: c.cpus, Env: []string{searchPath(c.home.Path)}})
	if ctx.Err() != nil {
		return sysbench.Report{}, err
	}
	report, errParse := sysbench.Parse(bytes.NewReader(ran.Output))
	var failed *sysbench.FailedError
	if err != nil && errors.As(errParse, &failed) {
		err = failed // says why in fewer words
	}
	if err == nil {
		err = errParse
	}
	if err == nil {
		c.rate = float64(report.Transactions) / report.Time.Seconds()
		c.spent += ran.CPU
	}
	return report, err
}

// Burst implements engine.Client.
func (c *client) Burst(spec engine.BurstSpec) (engine.Burst, error) {
	c.tally.Settle(spec.DropLast)
	if err := spec.Check(); err != nil {
		return engine.Burst{}, fmt.Errorf("oltp: %w", err)
	}
	ctx := context.Background()
	if spec.Deadline > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, spec.Deadline, fmt.Errorf("no end within %v: %w", spec.Deadline, context.DeadlineExceeded))
		defer cancel()
	}
	b, err := c.burst(ctx, spec)
	if err != nil {
		return engine.Burst{}, c.wrong(err)
	}
	return b, nil
}

func (c *client) burst(ctx context.Context, spec engine.BurstSpec) (engine.Burst, error) {
	if err := c.cleared(ctx); err != nil {
		return engine.Burst{}, err
	}
	begin := time.Now()
	c.spent = 0
	run := c.run
	var warm sysbench.Report
	if spec.Warmup > 0 {
		var err error
		// sysbench has no warm-up, and counts time in whole seconds: it is a run of its own, and ended by its transactions.
		run.Time, run.Events = spec.Warmup, max(int64(c.rate*spec.Warmup.Seconds()), int64(run.Threads))
		if warm, err = c.measure(ctx, run); err != nil {
			return engine.Burst{}, err
		}
	}
	before, err := c.status(ctx)
	if err != nil {
		return engine.Burst{}, err
	}
	run.Time, run.Events = spec.Duration, spec.Transactions
	report, err := c.measure(ctx, run)
	if err != nil {
		return engine.Burst{}, err
	}
	end := time.Now()
	after, err := c.status(ctx)
	if err != nil {
		return engine.Burst{}, err
	}
	b := describe(report)
	b.Start, b.Span = end.Add(-report.Time), end.Sub(begin)
	b.CPU, b.Work = c.spent, b.Transactions+warm.Transactions
	c.tally.Take(b, more(report, between(before.replication(), after.replication())))
	return b, nil
}

// more is what a report says beside the figures of a burst.
func more(r sysbench.Report, replication *result.Replication) workload.More {
	return workload.More{
		Latencies: func(h *latency.Histogram) { r.Each(h.Record) },
		Series:    func(at float64) []result.Second { return series(r, at) },
		Add:       func(t *engine.Totals) { t.Replication = merge(t.Replication, replication) },
	}
}

// describe is a report as the figures of a burst.
func describe(r sysbench.Report) engine.Burst {
	return engine.Burst{
		Duration:     r.Time,
		Transactions: r.Transactions,
		Errors:       r.Errors + r.Reconnects,
		Min:          r.Lowest(),
		P50:          r.Quantile(0.5),
		P90:          r.Quantile(0.9),
		P99:          r.Quantile(0.99),
		Mean:         r.Mean,
		Max:          math.Max(r.Max, r.Quantile(1)),
	}
}

// Collect implements engine.Client.
func (c *client) Collect(dropLast bool) (engine.Totals, error) {
	ctx, cancel := context.WithTimeout(context.Background(), collectTime)
	defer cancel()
	_ = c.clear(ctx) // a node that does not answer any more is one that the next burst tells of
	return c.tally.Collect(dropLast)
}

// collectTime is how long a node may take to begin anew.
const collectTime = 5 * time.Second

// Close implements engine.Client. It ends a burst that is under way.
func (c *client) Close() error { return c.home.Close() }
