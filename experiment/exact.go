// Package experiment carries a study out. Prepare expands the study into cells and fits them into its time budget, Assemble adds what
// they are measured with, and Run measures them build by build, by a strategy, and writes each finished trial to the run folder.
package experiment

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"netdelta/engine"
	"netdelta/experiment/measure"
	"netdelta/experiment/study"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/workload"
)

// ExactJob is what one guest whose clock counts instructions has to measure: one build.
type ExactJob struct {
	Cells []result.Cell `json:"cells"`
	// Build is the build's number in its run, Seed the guest's, from which the order of networks and cells follows too.
	Build int    `json:"build"`
	Seed  uint64 `json:"seed"`
	// Warmup transactions of each cell don't count, Transactions do.
	Warmup       int `json:"warmup"`
	Transactions int `json:"transactions"`
	// PerInstruction is how many nanoseconds the clock goes on with each instruction.
	PerInstruction float64      `json:"ns_per_instruction"`
	Testbed        testbed.Spec `json:"testbed"`
}

// ExactConfig is a job with what it is done with.
type ExactConfig struct {
	ExactJob
	// Settle is how long a network is left alone after it was built, and a connection before it is measured: timers that
	// building has started run out meanwhile. A guest passes the time without cost.
	Settle    time.Duration
	Driver    testbed.Provider
	Workloads []workload.Workload
	// CPU is the processor that both ends are pinned to; negative leaves them free.
	CPU int
}

// MeasureExact builds one network after another, measures its cells, and hands over each trial as it is finished. A cell that
// fails gives a trial that says so; an error means that the rest could not be measured. It gives back what was seen of the
// testbeds.
func MeasureExact(ctx context.Context, c ExactConfig, finished func(result.Trial) error) (result.Environment, error) {
	e := &exactRun{ExactConfig: c, began: time.Now(), finished: finished}
	e.context = measure.NewContext(measure.Config{Driver: c.Driver, Workloads: c.Workloads, Testbed: c.Testbed}, result.Run{Seed: c.Seed, Cells: c.Cells})
	for _, g := range e.context.Groups(c.Build, c.Cells) {
		if err := errors.Join(ctx.Err(), e.network(ctx, g)); err != nil {
			return e.context.Observed.Environment(result.Environment{}), err
		}
		runtime.GC() // nowhere else: it must not run during a measurement
	}
	return e.context.Observed.Environment(result.Environment{}), nil
}

// Inexact is why counting instructions says nothing of a cell, "" where it does. exact says that the cell's workload can be
// counted at all.
func Inexact(c result.Cell, exact bool) string {
	p, on := c.Params, c.Params.Conditions
	for _, lack := range []struct {
		is   bool
		what string
	}{
		{!exact, "workload " + c.Workload + " counts what is done in parallel, or off the path"},
		{p.Connections > 1, "several connections share a processor"},
		{p.RequestRate > 0, "a rate of requests is kept by a clock that stands still while nothing runs"},
		{p.CPU == "two" || p.CPU == "any", "there is one processor"},
		{p.BusyPoll > 0, "busy polling waits by computing"},
		{on.LinkDelay > 0 || on.LinkRate > 0 || on.LinkLoss > 0 || on.NodeLinks != "", "a link's delay, rate and loss take time and no instructions"},
		{on.RPS == result.On, "there is no other processor to steer packets to"},
		{on.QoS != "", "there is one processor, which nothing competes for"},
	} {
		if lack.is {
			return "it has no exact meaning: " + lack.what + "; run it without --exact"
		}
	}
	return ""
}

// Supported marks the cells that can't be measured on a testbed, with the reasons.
func Supported(ctx context.Context, cells []result.Cell, driver testbed.Provider) ([]result.Cell, error) {
	p := Plan{Cells: slices.Clone(cells)}
	if err := p.refuse(p.unsupported(ctx, driver, &study.Study{})); err != nil {
		return nil, err
	}
	p.markBaseless()
	return p.Cells, nil
}

// exactRun is an exact build under way.
type exactRun struct {
	ExactConfig
	context  *measure.Context
	began    time.Time
	finished func(result.Trial) error
}

// network builds a network and measures its cells.
func (e *exactRun) network(ctx context.Context, g measure.Group) (err error) {
	tb, err := e.context.Open(ctx, g)
	if err == nil {
		defer func() { err = errors.Join(err, tb.Close()) }()
		err = e.context.Observed.Look(ctx, tb, g.Network)
		time.Sleep(e.Settle)
	}
	failed := err
	for _, c := range g.Cells {
		t := result.Trial{Schema: result.Schema, Cell: c.ID, Role: c.Role, Build: e.Build, Started: time.Now(), ClientCPU: e.CPU, ServerCPU: e.CPU}
		err := failed
		if err == nil {
			err = e.cell(ctx, tb, c, &t)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			t.Failed = err.Error()
		}
		t.Finished = time.Now()
		if err := e.finished(t); err != nil {
			return fmt.Errorf("handing over trial %s: %w", t.ID(), err)
		}
	}
	return nil
}

// cell measures one cell.
func (e *exactRun) cell(ctx context.Context, tb testbed.Testbed, c result.Cell, t *result.Trial) (err error) {
	pair, err := e.context.PairOn(ctx, tb, c, e.CPU)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pair.Close()) }()
	if t.Path, err = pair.Prove(ctx); err != nil {
		return err
	}
	time.Sleep(e.Settle)
	if _, err := pair.Exchange(e.Warmup); err != nil {
		return err
	}
	start := time.Since(e.began)
	times, err := pair.Exchange(e.Transactions)
	if err != nil {
		return err
	}
	e.record(t, pair.Message(), start, times)
	return nil
}

// record writes what was counted into the trial, as one burst of one round.
func (e *exactRun) record(t *result.Trial, message int, start time.Duration, times engine.ExactTimes) {
	sum := int64(0)
	for _, ns := range times.RoundTrip {
		sum += ns
	}
	request, response := median(times.Request), median(times.Response)
	slices.Sort(times.RoundTrip)
	n := len(times.RoundTrip)
	whole := func(q float64) float64 { return float64(times.RoundTrip[min(n-1, int(q*float64(n)))]) }
	t.Bursts = result.Bursts{
		Round: []int{0}, Start: []int64{start.Nanoseconds()}, Duration: []int64{sum}, Span: []int64{sum},
		Transactions: []int64{int64(n)}, Lost: []int64{0},
		Min: []float64{whole(0)}, P50: []float64{median(times.RoundTrip)}, P90: []float64{whole(0.9)}, P99: []float64{whole(0.99)},
		Mean: []float64{float64(sum) / float64(n)}, Max: []float64{whole(1)}, Disturbed: []string{""},
	}
	t.Transactions, t.Sent = int64(n), int64(n)
	t.Bytes = 2 * int64(n) * int64(message)
	t.Exact = &result.ExactTrial{
		Seed: e.Seed, Request: request / e.PerInstruction, Response: response / e.PerInstruction,
		RoundTrip: median(times.RoundTrip) / e.PerInstruction,
	}
}

// median is the median of durations in nanoseconds.
func median(ns []int64) float64 {
	sorted := slices.Sorted(slices.Values(ns))
	n := len(sorted)
	return float64(sorted[(n-1)/2]+sorted[n/2]) / 2
}
