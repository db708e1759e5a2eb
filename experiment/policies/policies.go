// Package policies measures how long NetworkPolicy objects of a cluster take to have an effect: from the request that
// makes one until packets are refused, and from the one that deletes it until they pass again.
package policies

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"netdelta/agent"
	"netdelta/experiment/record"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/unit"
)

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
	Open func(ctx context.Context, count int, every time.Duration) (testbed.PolicyTarget, error)
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
type Change = result.PolicyKind

// The changes.
const (
	Refused Change = "refused" // packets are refused after the policy was made
	Passing Change = "passing" // packets pass again after it was deleted

	Admitted Change = "admitted" // packets of a fresh pod pass, which the policy lets in
	Barred   Change = "barred"   // packets of a fresh pod are refused, which no policy lets in
)

// Fresh says whether a change is measured by a fresh pod.
func Fresh(c Change) bool { return c == Admitted || c == Barred }

// Changes are all of them, in the order in which they are measured.
func Changes() []Change { return []Change{Refused, Passing, Admitted, Barred} }

// Head implements record.Strategy.
func (c Config) Head() result.Run {
	return result.Run{
		Strategy: &result.Strategy{Name: result.StrategyPolicies, Every: c.Every, Repeat: c.Repeat}, Cells: cells(c),
	}
}

// Measure implements record.Strategy.
func (c Config) Measure(ctx context.Context, rec *record.Record) error {
	k := keeper{rec: rec}
	var first error
	for _, n := range c.Counts {
		if err := at(ctx, c, &k, n); err != nil {
			first = errors.Join(first, err, k.fail(n, err))
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	if len(Of(rec.Run, rec.Trials).Samples) == 0 {
		return fmt.Errorf("%w: %w", record.ErrNothing, first)
	}
	return nil
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
		c.tell("%s, %d of %d: refused after %v, passing after %v", unit.Counted(count, "policy"), done.changes+1, c.Repeat,
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
func one(ctx context.Context, g testbed.PolicyTarget, c Config, s Sample, change func(context.Context) error) (Sample, error) {
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
func still(g testbed.PolicyTarget) error {
	select {
	case <-g.Turns():
		return errAlone
	default:
		return nil
	}
}

// await waits for the next turn.
func await(ctx context.Context, g testbed.PolicyTarget, within time.Duration) (testbed.Turn, error) {
	select {
	case t := <-g.Turns():
		return t, nil
	case <-g.Lost():
		return testbed.Turn{}, errors.New("the pod that probes is gone")
	case <-time.After(within):
		return testbed.Turn{}, fmt.Errorf("no effect within %v; does the cluster enforce NetworkPolicy?", within)
	case <-ctx.Done():
		return testbed.Turn{}, ctx.Err()
	}
}

// fresh measures fresh pods under a policy that admits pods by a label: each time one with the label and one without, at once. The policy
// is in effect before the first of them: the pod that probes has no such label and is refused.
func fresh(ctx context.Context, g testbed.PolicyTarget, c Config, k *keeper, count int, done *progress) error {
	if err := g.Restrict(ctx); err != nil {
		return err
	}
	t, err := await(ctx, g, c.Within)
	if err != nil {
		return err
	}
	if t.Open {
		return errAlone
	}
	for ; done.fresh < c.Repeat; done.fresh++ {
		admitted, barred, err := both(ctx, g, c, count)
		if err != nil {
			return fmt.Errorf("fresh pods, repetition %d: %w", done.fresh+1, err)
		}
		if err := still(g); err != nil {
			return err
		}
		if err := k.add(admitted, barred); err != nil {
			return err
		}
		c.tell("%s, %d of %d: a fresh pod that is let in passes after %v; of one that is not %d packets passed", unit.Counted(count, "policy"), done.fresh+1, c.Repeat,
			admitted.After.Round(time.Millisecond), barred.Slipped)
	}
	return nil
}

// both measures a fresh pod that is admitted and one that is barred.
func both(ctx context.Context, g testbed.PolicyTarget, c Config, count int) (admitted, barred Sample, err error) {
	var errs [2]error
	var all sync.WaitGroup
	for i, s := range []*Sample{&admitted, &barred} {
		*s = Sample{Policies: count, Change: []Change{Admitted, Barred}[i]}
		all.Go(func() {
			var v testbed.FreshResult
			if v, errs[i] = g.TryFresh(ctx, s.Change == Admitted, c.Every, c.Within); errs[i] != nil {
				return
			}
			s.Before, s.After = v.Before, v.After
			if s.Change == Barred {
				s.Slipped = v.Passed
			}
			if !v.Settled {
				errs[i] = unsettled(s.Change, v, c.Within)
			}
		})
	}
	all.Wait()
	return admitted, barred, errors.Join(errs[:]...)
}

// unsettled is the error of a fresh pod for which a policy has no effect in time.
func unsettled(change Change, v testbed.FreshResult, within time.Duration) error {
	if change == Admitted {
		return fmt.Errorf("none of %d packets of a fresh pod passed within %v, although the policy lets it in", v.Sent, within)
	}
	return fmt.Errorf("%d of %d packets of a fresh pod passed within %v, although no policy lets it in", v.Passed, v.Sent, within)
}
