package foreign

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"time"

	"netdelta/engine"
	"netdelta/internal/daemon"
	"netdelta/internal/latency"
	"netdelta/result"
	"netdelta/workload"
)

// client runs an engine's client for each burst.
type client struct {
	engine Engine
	name   string // of the workload
	params result.Params
	to     netip.AddrPort
	cpus   []int
	home   *daemon.Home
	tally  workload.Tally
	broken error
}

// outcome is what a run of a program measured.
type outcome struct {
	burst    engine.Burst
	tcp      *result.TCPInfo
	messages []int64 // round trips in nanoseconds, all of them; nil where the program does not tell
}

// dial makes a client. Nothing is connected yet: the program does that in each burst, before what it measures.
func (e Engine) dial(name string, p result.Params, to netip.AddrPort, cpu int) (engine.Client, error) {
	if !to.IsValid() || to.Port() == 0 || to.Addr().IsUnspecified() {
		return nil, fmt.Errorf("%s: load by %s: %v is no server's address", name, e.name, to)
	}
	home, err := daemon.Open(room)
	if err != nil {
		return nil, fmt.Errorf("%s: load by %s: %w", name, e.name, err)
	}
	return &client{engine: e, name: name, params: p, to: to, cpus: daemon.Pin(cpu), home: home, tally: workload.Tally{Opened: time.Now()}}, nil
}

// ErrBroken is the error of a client whose last burst failed: it is of no more use.
var ErrBroken = errors.New("an earlier burst failed")

// slack is what a program may take beyond its bursts when no deadline is given.
const slack = 10 * time.Second

// Burst implements engine.Client. The program counts in whole seconds: a burst is at least as long as was asked for.
func (c *client) Burst(spec engine.BurstSpec) (engine.Burst, error) {
	fail := func(err error) (engine.Burst, error) {
		return engine.Burst{}, fmt.Errorf("%s: load by %s to %v: %w", c.name, c.engine.name, c.to, err)
	}
	if c.broken != nil {
		return fail(fmt.Errorf("%w: %w", ErrBroken, c.broken))
	}
	if spec.Duration <= 0 {
		return fail(errors.New("it takes a duration: its programs run for a time, not for a number of transactions"))
	}
	c.tally.Settle(spec.DropLast)
	length, warmup := whole(spec.Duration), whole(spec.Warmup)
	deadline := spec.Deadline
	if deadline <= 0 {
		deadline = length + warmup + slack
	}
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	start := time.Now()
	o, err := c.engine.measure(ctx, c, length, warmup)
	if err != nil {
		c.broken = err
		return fail(err)
	}
	o.burst.Start, o.burst.Span = start, time.Since(start)
	c.tally.Take(o.burst, workload.More{Latencies: o.record, Add: o.add})
	return o.burst, nil
}

// whole is a time in whole seconds, rounded up.
func whole(d time.Duration) time.Duration { return (d + time.Second - 1).Truncate(time.Second) }

// run runs the engine's client and returns what it printed, also when it failed.
func (c *client) run(ctx context.Context, program string, args []string) ([]byte, error) {
	return c.home.Run(ctx, daemon.Spec{Path: program, Args: args, CPUs: c.cpus})
}

// take reads a file of the home and removes it.
func (c *client) take(name string) (text []byte, err error) {
	err = c.home.Do(func() error {
		full := c.home.Path(name)
		if text, err = os.ReadFile(full); err != nil {
			return fmt.Errorf("read what it measured: %w", err)
		}
		return os.Remove(full)
	})
	return text, err
}

// record adds all round trips to a histogram.
func (o *outcome) record(h *latency.Histogram) {
	for _, ns := range o.messages {
		h.Record(ns, 1)
	}
}

// add adds what TCP said of the connections: the last word counts, and all retransmits.
func (o *outcome) add(t *engine.Totals) {
	if o.tcp == nil {
		return
	}
	sum := *o.tcp
	if t.TCP != nil {
		sum.Retransmits += t.TCP.Retransmits
	}
	t.TCP = &sum
}

// Collect implements engine.Client.
func (c *client) Collect(dropLast bool) (engine.Totals, error) {
	totals, err := c.tally.Collect(dropLast)
	if err != nil {
		return totals, fmt.Errorf("%s: %w", c.name, err)
	}
	return totals, nil
}

// Close implements engine.Client.
func (c *client) Close() error { return c.home.Close() }
