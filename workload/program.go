package workload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"netdelta/engine"
	"netdelta/internal/daemon"
)

// ProgramClient is a client that runs another program for each burst, in a home. It implements engine.Client.
type ProgramClient struct {
	// Name begins its errors: the workload, the program and the server.
	Name string
	Home *daemon.Sandbox
	// Run carries out a burst. Where it leaves them out, the burst's start and span are the call's.
	Run func(ctx context.Context, spec engine.BurstSpec) (engine.Burst, engine.More, error)
	// Collected, if there is one, adds to the totals what is no sum over bursts. Its error says that what was measured is not to be used.
	Collected func(*engine.Totals) error
	// Resumes says that a burst may follow one that failed.
	Resumes bool
	Tally   engine.Tally

	mu     sync.Mutex
	failed error
}

// ErrBroken is matched by the error of a burst after one that failed: the client is of no more use.
var ErrBroken = errors.New("an earlier burst failed")

// slack is what a program may take beyond its burst when no deadline is given.
const slack = 30 * time.Second

// Burst implements engine.Client.
func (c *ProgramClient) Burst(spec engine.BurstSpec) (b engine.Burst, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer func() {
		if err != nil {
			b, err = engine.Burst{}, fmt.Errorf("%s: %w", c.Name, err)
		}
	}()
	if c.failed != nil {
		return b, c.failed
	}
	if err := spec.Check(); err != nil {
		return b, err
	}
	c.Tally.Settle(spec.DropLast)
	deadline := cmp.Or(spec.Deadline, spec.Warmup+spec.Duration+slack)
	ctx, cancel := context.WithTimeoutCause(context.Background(), deadline, fmt.Errorf("burst not over after %v: %w", deadline, context.DeadlineExceeded))
	defer cancel()
	start := time.Now()
	b, more, err := c.Run(ctx, spec)
	if err != nil {
		if !c.Resumes {
			c.failed = fmt.Errorf("%w: %w", ErrBroken, err)
		}
		return b, err
	}
	if b.Start.IsZero() {
		b.Start = start
	}
	if b.Span == 0 {
		b.Span = time.Since(start)
	}
	c.Tally.Take(b, more)
	return b, nil
}

// Collect implements engine.Client.
func (c *ProgramClient) Collect(dropLast bool) (engine.Totals, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	totals, err := c.Tally.Collect(dropLast)
	if err == nil && c.Collected != nil {
		err = c.Collected(&totals)
	}
	if err != nil && !errors.Is(err, daemon.ErrClosed) { // a client that is closed has nothing more to look at
		return totals, fmt.Errorf("%s: %w", c.Name, err)
	}
	return totals, nil
}

// Close implements engine.Client. A burst that is under way ends with an error.
func (c *ProgramClient) Close() error { return c.Home.Close() }
