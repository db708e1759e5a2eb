package block

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"netdelta/engine"
	"netdelta/internal/daemon"
	"netdelta/result"
	"netdelta/unit"
	"netdelta/workload"
	"netdelta/workload/tool/fio"
)

// clientRoom is what a client's home may hold: configuration.
const clientRoom = 4 * unit.MiB

// client runs fio for each burst.
type client struct {
	home   *daemon.Home
	target fio.Target
	params load
	cpu    int
	server string // for people
	broken error  // of the first burst that failed
	mu     sync.Mutex
	tally  workload.Tally
	disk   *result.Disk // behind the store, where its servers don't say
}

// attacher readies a home and says how fio reaches a store from it.
type attacher func(ctx context.Context, h *daemon.Home, p load) (fio.Target, error)

// open readies a client.
func open(ctx context.Context, p result.Params, cpu int, server string, attach attacher) (_ *client, err error) {
	if err := check(p); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("block: a client of %s: %w", server, err)
		}
	}()
	home, err := daemon.Open(clientRoom)
	if err != nil {
		return nil, err
	}
	c := &client{home: home, params: loadOf(p), cpu: cpu, server: server}
	if c.target, err = attach(ctx, home, c.params); err == nil {
		err = able(ctx, home, c.target.Engine, cpu)
	}
	if err != nil {
		return nil, errors.Join(err, home.Close())
	}
	return c, nil
}

// able finds out whether the fio that is installed can do what is asked of it.
func able(ctx context.Context, home *daemon.Home, engine string, cpu int) error {
	said, err := home.Run(ctx, daemon.Spec{Path: fio.Program, Args: []string{"--version"}, CPUs: daemon.Pin(cpu)})
	if err != nil {
		return fmt.Errorf("ask fio for its version: %w", err)
	}
	if err := fio.CheckVersion(string(said)); err != nil {
		return err
	}
	// fio knows an engine by finding its library, which may be in a package of its own.
	if _, err := home.Run(ctx, daemon.Spec{Path: fio.Program, Args: []string{"--enghelp=" + engine}}); err != nil {
		return fmt.Errorf("fio has no engine %s: install a fio that was built with it: %w", engine, err)
	}
	return nil
}

// patience is what a burst may take beyond its length when no deadline is given.
const patience = 30 * time.Second

// Burst implements engine.Client.
func (c *client) Burst(spec engine.BurstSpec) (engine.Burst, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := spec.Check(); err != nil {
		return engine.Burst{}, fmt.Errorf("block: %w", err)
	}
	if c.broken != nil {
		return engine.Burst{}, fmt.Errorf("block: a burst after one that failed: %w", c.broken)
	}
	c.tally.Settle(spec.DropLast)
	b, d, err := c.run(spec)
	if err != nil {
		c.broken = fmt.Errorf("block: a burst against %s: %w", c.server, err)
		return engine.Burst{}, c.broken
	}
	c.tally.Take(b, workload.More{Latencies: d.Latency.Record})
	return b, nil
}

// run has fio do a burst.
func (c *client) run(spec engine.BurstSpec) (engine.Burst, fio.Direction, error) {
	length := spec.Duration
	if length == 0 {
		length = patience
	}
	deadline := spec.Deadline
	if deadline == 0 {
		deadline = spec.Warmup + length + patience
	}
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	clients := int64(c.params.Clients)
	job := fio.Job{
		Target: c.target, Operation: c.params.Operation, Block: c.params.Block, Depth: c.params.Depth, Clients: c.params.Clients,
		Warmup: spec.Warmup, Duration: max(length, time.Millisecond), Operations: (spec.Transactions + clients - 1) / clients,
	}
	if job.Operations > 0 {
		job.Warmup = 0 // fio would count its operations among the others
	}
	begun := time.Now()
	out, err := c.home.Run(ctx, daemon.Spec{Path: fio.Program, Args: fio.Args(job), Env: c.target.Env, CPUs: daemon.Pin(c.cpu)})
	span := time.Since(begun)
	if errors.Is(err, context.DeadlineExceeded) {
		return engine.Burst{}, fio.Direction{}, fmt.Errorf("it is not over after %v: %w", deadline, err)
	}
	if err != nil {
		return engine.Burst{}, fio.Direction{}, err
	}
	report, err := fio.Parse(out)
	if err != nil {
		return engine.Burst{}, fio.Direction{}, err
	}
	b, d, err := burst(report)
	b.Span = span
	// fio says nothing of its warm-up: for its length as much is taken to have been done in it as was measured afterwards.
	all := 1 + float64(job.Warmup)/float64(max(b.Duration, 1))
	b.CPU, b.Work, b.Moved = time.Duration(float64(b.CPU)*all), int64(float64(b.Work)*all), int64(float64(b.Moved)*all)
	return b, d, err
}

// burst is what a report says of a burst.
func burst(report *fio.Report) (engine.Burst, fio.Direction, error) {
	r := report.Jobs[0]
	d := r.Done()
	if r.Error != 0 || d.Operations == 0 || d.Duration == 0 {
		return engine.Burst{}, d, fmt.Errorf("fio did %d operations in %v, %d failed, the first with error %d", d.Operations, d.Duration, r.Errors, r.Error)
	}
	l := d.Latency
	b := engine.Burst{
		Start:    report.Written.Add(-d.Duration),
		Duration: d.Duration, Transactions: d.Operations, Bytes: d.Bytes, Errors: r.Errors,
		Min: l.Min, P50: l.Quantile(0.5), P90: l.Quantile(0.9), P99: l.Quantile(0.99), Mean: l.Mean, Max: l.Max,
		Throughput: float64(d.Bytes) * 8 / d.Duration.Seconds(),
		// fio starts to count anew when its warm-up ends.
		CPU: r.User + r.System, Work: d.Operations, Moved: d.Bytes,
	}
	return b, d, nil
}

// Collect implements engine.Client.
func (c *client) Collect(dropLast bool) (engine.Totals, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	totals, err := c.tally.Collect(dropLast)
	if err != nil {
		return totals, fmt.Errorf("block: %w", err)
	}
	totals.Disk = c.disk
	return totals, nil
}

// Close implements engine.Client. A burst that is under way ends with an error.
func (c *client) Close() error { return c.home.Close() }
