// Package policies measures how long NetworkPolicy objects of a cluster take to have an effect: from the request that
// makes one until packets are refused, and from the one that deletes it until they pass again.
package policies

import (
	"context"
	"errors"
	"fmt"
	"time"

	"netdelta/agent"
	"netdelta/experiment/record"
	"netdelta/result"
	"netdelta/testbed/kube/inside"
)

// Target is a server that one policy closes, and a watch of whether it is closed.
type Target interface {
	// Shut makes the policy and Lift deletes it; both return when that is accepted.
	Shut(ctx context.Context) error
	Lift(ctx context.Context) error
	// Turns are the openings and closings; the first says how the way was found. Lost is closed when there will be no more.
	Turns() <-chan inside.Turn
	Lost() <-chan struct{}
	// Restrict makes, in place of Shut, a policy that closes the way to all but the pods it admits. TryFresh has a fresh pod, admitted or not, try the
	// way from its first moment on.
	Restrict(ctx context.Context) error
	TryFresh(ctx context.Context, admitted bool, every, within time.Duration) (inside.FreshResult, error)
	// Clock reads the clock by which turns are told.
	Clock(ctx context.Context) (inside.Turn, error)
	Close() error
}

// Config is what is measured.
type Config struct {
	// Counts are the numbers of policies that are in force, the one that is timed among them; 1 at least.
	Counts []int
	// Repeat is how often the policy is made and deleted at each of them.
	Repeat int
	// Fresh asks for fresh pods, as many of each kind at each of the numbers.
	Fresh bool
	// Every is the time between two probes.
	Every time.Duration
	// Within is how long a change may take to have an effect.
	Within time.Duration
	// Open opens a target with a number of policies in force.
	Open func(ctx context.Context, count int, every time.Duration) (Target, error)
	// Record keeps the trials and says what was measured before; nil keeps them in memory.
	Record *record.Record
	// Log is told what has been done; it may be nil.
	Log func(line string)
}

// Limits of a Config.
const (
	MostPolicies = 10_000
	MostRepeats  = 1000
)

// Check is what is wrong with it.
func (c Config) Check() error {
	if len(c.Counts) == 0 {
		return errors.New("no number of policies to measure at")
	}
	for _, n := range c.Counts {
		if n < 1 || n > MostPolicies {
			return fmt.Errorf("%d policies: need 1 to %d", n, MostPolicies)
		}
	}
	if c.Repeat < 1 || c.Repeat > MostRepeats {
		return fmt.Errorf("%d repetitions: need 1 to %d", c.Repeat, MostRepeats)
	}
	if c.Every < time.Millisecond || c.Every > time.Second {
		return fmt.Errorf("a probe every %v: need 1ms to 1s", c.Every)
	}
	return nil
}

// Change is what a policy does to a way.
type Change string

// The changes.
const (
	Refused Change = "refused" // packets are refused after the policy was made
	Passing Change = "passing" // packets pass again after it was deleted

	Admitted Change = "admitted" // packets of a fresh pod pass, which the policy lets in
	Barred   Change = "barred"   // packets of a fresh pod are refused, which no policy lets in
)

// Fresh says whether a change is measured by a fresh pod.
func (c Change) Fresh() bool { return c == Admitted || c == Barred }

// Changes are all of them, in the order in which they are measured.
func Changes() []Change { return []Change{Refused, Passing, Admitted, Barred} }

// ErrNothing says that nothing could be measured.
var ErrNothing = errors.New("no policy had an effect that could be timed")

// Run measures what the record lacks. The outcome and the record hold what was measured also after an error of ctx; the error matches
// ErrNothing where nothing was measured.
func Run(ctx context.Context, c Config) (Outcome, error) {
	if err := c.Check(); err != nil {
		return Outcome{}, err
	}
	k := keeper{rec: c.Record}
	if k.rec == nil {
		k.rec = &record.Record{}
	}
	s := result.Strategy{Name: result.StrategyPolicies, Every: c.Every, Repeat: c.Repeat}
	if err := k.rec.Begin(s, cells(c)); err != nil {
		return Outcome{}, err
	}
	var first error
	for _, n := range c.Counts {
		if err := at(ctx, c, &k, n); err != nil {
			first = errors.Join(first, err, k.fail(n, err))
		}
		if ctx.Err() != nil {
			break
		}
	}
	o := Of(k.rec.Run, k.rec.Trials)
	err := ctx.Err()
	if err == nil && len(o.Samples) == 0 {
		err = fmt.Errorf("%w: %w", ErrNothing, first)
	}
	k.rec.End(err, ctx.Err() != nil)
	o.Finished = k.rec.Run.Finished
	return o, err
}

// progress is how much was measured at a number of policies.
type progress struct{ changes, fresh int }

// at measures with a number of policies in force. What is disturbed is begun anew.
func at(ctx context.Context, c Config, k *keeper, count int) error {
	done := progress{changes: k.measured(count, Refused, Passing), fresh: k.measured(count, Admitted, Barred)}
	for done.changes < c.Repeat || c.Fresh && done.fresh < c.Repeat {
		err := through(ctx, c, k, count, &done)
		if !errors.Is(err, errAlone) {
			return err
		}
		if k.disturb(); k.disturbed > c.Repeat+2 {
			return fmt.Errorf("%w, %d times: give the machine less to do, or probe less often with --every", err, k.disturbed)
		}
	}
	return nil
}

// through measures with one target what is still to be measured.
func through(ctx context.Context, c Config, k *keeper, count int, done *progress) (err error) {
	g, err := c.Open(ctx, count, c.Every)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	t, err := await(ctx, g, c.Within)
	if err != nil {
		return fmt.Errorf("find the server: %w", err)
	}
	if !t.Open {
		return errors.New("the server is not reached before there is a policy that would close it")
	}
	for ; done.changes < c.Repeat; done.changes++ {
		shut, err := one(ctx, g, c, Sample{Policies: count, Change: Refused}, g.Shut)
		if err != nil {
			return fmt.Errorf("repetition %d: %w", done.changes+1, err)
		}
		lift, err := one(ctx, g, c, Sample{Policies: count, Change: Passing}, g.Lift)
		if err != nil {
			return fmt.Errorf("repetition %d: %w", done.changes+1, err)
		}
		if err := k.add(shut, lift); err != nil {
			return err
		}
		c.tell("%d policies, %d of %d: refused after %v, passing after %v", count, done.changes+1, c.Repeat,
			shut.After.Round(time.Millisecond), lift.After.Round(time.Millisecond))
	}
	if !c.Fresh {
		return nil
	}
	return fresh(ctx, g, c, k, count, done)
}

// tell logs what has been done.
func (c Config) tell(format string, args ...any) {
	if c.Log != nil {
		c.Log(fmt.Sprintf(format, args...))
	}
}

// clockReadings is how often clocks are compared for one sample.
const clockReadings = 5

// settled is how long a way is left alone between two changes: what engines do in batches begins anew by then.
const settled = 1500 * time.Millisecond

// one makes a change and waits for its effect.
func one(ctx context.Context, g Target, c Config, s Sample, change func(context.Context) error) (Sample, error) {
	select {
	case <-time.After(settled):
	case <-ctx.Done():
		return s, ctx.Err()
	}
	offset, err := agent.CompareClocks(clockReadings, func() (agent.Reading, error) {
		t, err := g.Clock(ctx)
		return agent.Reading{Received: t.Received, Answered: t.Answered}, err
	})
	if err != nil {
		return s, err
	}
	if err := still(g); err != nil {
		return s, err
	}
	sent := agent.Now()
	if err := change(ctx); err != nil {
		return s, err
	}
	s.Request = agent.Now() - sent
	t, err := await(ctx, g, c.Within)
	if err != nil {
		return s, err
	}
	if t.Open != (s.Change == Passing) || t.Since-offset.Ahead+offset.Error < sent {
		return s, errAlone
	}
	s.ClockError = offset.Error
	s.Before, s.After = t.Before-offset.Ahead-sent, t.Since-offset.Ahead-sent
	return s, nil
}

// errAlone says that a way opened or closed without a request: the machine or the engine is overloaded. What
// was measured meanwhile says nothing of policies.
var errAlone = errors.New("the way opened or closed by itself")

// still is errAlone if the way has turned since the last change.
func still(g Target) error {
	select {
	case <-g.Turns():
		return errAlone
	default:
		return nil
	}
}

// await waits for the next turn.
func await(ctx context.Context, g Target, within time.Duration) (inside.Turn, error) {
	select {
	case t := <-g.Turns():
		return t, nil
	case <-g.Lost():
		return inside.Turn{}, errors.New("the pod that probes is gone")
	case <-time.After(within):
		return inside.Turn{}, fmt.Errorf("no effect within %v; does the cluster enforce NetworkPolicy?", within)
	case <-ctx.Done():
		return inside.Turn{}, ctx.Err()
	}
}
