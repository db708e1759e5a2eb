package record

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"netdelta/agent"
	"netdelta/result"
	"netdelta/testbed"
)

// Builds are the builds of a strategy that sets networks up side by side.
type Builds struct {
	Record *Record
	Count  int
	// Seed fixes the random orders.
	Seed uint64
	// Log is told what happens, in lines without an end; it may be nil.
	Log func(line string)
}

// Network is a network in one build.
type Network interface {
	// Trial is what the build measured, or why it measured nothing; keep is false after an interruption that left nothing to keep.
	Trial() (t result.Trial, keep bool, err error)
	// Close removes the network, also one that could not be set up.
	Close() error
}

// Measure measures the builds that the record lacks: it opens all networks in random order, has rounds measure those that could be set
// up, keeps their trials and removes them. The random numbers of a build follow from its number.
func Measure[N Network](ctx context.Context, b Builds, open func(ctx context.Context, cell result.Cell, build int) (N, error),
	rounds func(ctx context.Context, rng *rand.Rand, ready []N) error,
) error {
	for build := range b.Count {
		if b.Record.hasBuild(build) {
			continue
		}
		if err := errors.Join(measureBuild(ctx, b, build, open, rounds), ctx.Err()); err != nil {
			return err
		}
	}
	return nil
}

func measureBuild[N Network](ctx context.Context, b Builds, build int, open func(context.Context, result.Cell, int) (N, error),
	rounds func(context.Context, *rand.Rand, []N) error,
) (err error) {
	cells := b.Record.Run.Cells
	rng := rand.New(rand.NewPCG(b.Seed, uint64(build)))
	order := rng.Perm(len(cells))
	var opened, ready []N
	defer func() {
		for i, n := range opened {
			t, keep, trialErr := n.Trial()
			if keep && trialErr == nil {
				trialErr = b.Record.Add(cells[order[i]], t)
			}
			err = errors.Join(err, trialErr, n.Close())
		}
	}()
	for _, i := range order {
		n, err := open(ctx, cells[i], build)
		opened = append(opened, n)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			b.Logf("build %d: %v", build+1, err)
			continue
		}
		ready = append(ready, n)
	}
	return rounds(ctx, rng, ready)
}

// Logf tells what happens.
func (b Builds) Logf(format string, args ...any) {
	if b.Log != nil {
		b.Log(fmt.Sprintf(format, args...))
	}
}

// Agents are the agents of a network's pods. They are safe for concurrent use.
type Agents struct {
	Program agent.Program
	// AtOnce is how many of them do something at the same time: more only queue for processors. 0 is 16.
	AtOnce int

	mu  sync.Mutex
	all []*agent.Agent
}

// Start starts an agent in a pod.
func (s *Agents) Start(ctx context.Context, pod testbed.Pod) (*agent.Agent, error) {
	a, err := agent.Start(ctx, pod, s.Program)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, a)
	return a, nil
}

// usualAtOnce is how many agents do something at the same time where nothing else is said.
const usualAtOnce = 16

// Each calls do with the numbers below n, some at the same time, and waits for all.
func (s *Agents) Each(n int, do func(i int)) {
	var eg errgroup.Group
	eg.SetLimit(usualAtOnce)
	if s.AtOnce > 0 {
		eg.SetLimit(s.AtOnce)
	}
	for i := range n {
		eg.Go(func() error {
			do(i)
			return nil
		})
	}
	_ = eg.Wait() // there are no errors
}

// Close ends all agents. Errors of ending them are left out: what an agent failed at was said by its call.
func (s *Agents) Close() {
	s.Each(len(s.all), func(i int) { _ = s.all[i].Close() })
	s.all = nil
}

// Patience with servers that have just been made: not all nodes know their addresses at once.
const (
	dialPatience = 20 * time.Second
	dialPause    = 200 * time.Millisecond
)

// Dial connects a client, and tries again for a while where it fails.
func Dial(ctx context.Context, client *agent.Agent, dial func() (session int, err error)) (session int, err error) {
	for until := time.Now().Add(dialPatience); ; {
		session, err = dial()
		if err == nil || !client.Alive() || ctx.Err() != nil || time.Now().After(until) {
			return session, err
		}
		select {
		case <-ctx.Done():
		case <-time.After(dialPause):
		}
	}
}
