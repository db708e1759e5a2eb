// Package states is the strategy that measures networks that need a change of the cluster under the testbeds. A build is a visit to one
// state of it: as it was found, or under one change; the scheduler has the states take turns. Each build makes its change anew, and
// starts all pods and services anew. A baseline of host stands side by side with the state's networks in every round; any other baseline is
// in a state of its own, to which its A/A control is a further visit.
package states

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"netdelta/experiment/measure"
	"netdelta/experiment/plan"
	"netdelta/experiment/sidebyside"
	"netdelta/result"
	"netdelta/testbed"
)

// restoreWithin bounds how long a cluster is waited for when the change of a run is undone.
const restoreWithin = 15 * time.Minute

// Strategy measures side by side, in one state after another.
type Strategy struct {
	*sidebyside.Strategy
	context *measure.Context
	changer testbed.Changer            // nil where nothing can be changed
	changed string                     // the network whose change is made, or was begun; "" for none
	spoiled map[string]bool            // where the change of the build under way could not be made: the cells that this is a failure of
	took    map[string][]time.Duration // until a change was ready, by network
	cells   []result.Cell              // of the build under way
	ways    map[string]string          // how packets crossed between nodes in the first visit, by state and network
}

// New returns the strategy of a run. It closes the changer.
func New(m *measure.Context, r *measure.Rounds, changer testbed.Changer) *Strategy {
	return &Strategy{Strategy: sidebyside.New(m, r), context: m, changer: changer, took: map[string][]time.Duration{}, ways: map[string]string{}}
}

// Prepare has nothing to do ahead of time: the next build is of another state.
func (s *Strategy) Prepare(context.Context, int, []result.Cell) {}

// Begin undoes the change of the build before, makes this one's, and sets the build up. Where a change can't be made its
// networks fail by name, and the run goes on with the others. One that can't be undone ends the run, since everything that is measured
// after it would have the wrong name.
func (s *Strategy) Begin(ctx context.Context, index int, cells []result.Cell) error {
	if err := s.restore(ctx); err != nil {
		return err
	}
	s.cells = cells
	change, changes := s.changeOf(cells)
	if !changes {
		return s.Strategy.Begin(ctx, index, cells)
	}
	var sessions []*measure.Session
	if change.Kept {
		b, err := s.Open(ctx, index, cells)
		if err != nil {
			return err
		}
		sessions = b.Sessions
	}
	if err := s.apply(ctx, change); err != nil {
		return s.spoil(ctx, index, cells, err)
	}
	if !change.Kept {
		return s.Strategy.Begin(ctx, index, cells)
	}
	// The connections may have died of the change, and what they have learned of their path is of the state before.
	for _, o := range sessions {
		if o.Failed != nil {
			continue
		}
		if err := o.Reopen(ctx); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			o.Failed = fmt.Errorf("after the change of the cluster: %w", err)
		}
	}
	return s.Warm(ctx)
}

// changeOf is the change that leads to the state of a build.
func (s *Strategy) changeOf(cells []result.Cell) (testbed.Change, bool) {
	for _, c := range cells {
		for _, change := range s.context.Changes {
			if plan.FirstState(c.State) == change.Network {
				return change, true
			}
		}
	}
	return testbed.Change{}, false
}

// apply makes a change. It counts as made as soon as it is begun.
func (s *Strategy) apply(ctx context.Context, change testbed.Change) error {
	if s.changer == nil {
		return fmt.Errorf("%s changes the cluster, and this testbed can't be changed", testbed.ChangedFor(change.Network))
	}
	s.changer.Watch(ctx)
	s.changed = change.Network
	start := time.Now()
	if err := s.changer.Apply(ctx, change); err != nil {
		return err
	}
	s.took[change.Network] = append(s.took[change.Network], time.Since(start))
	return nil
}

// spoil makes a build of cells that failed because the change of their networks could not be made. The run ends with ctx, and where
// another run changes the cluster: every figure would be of its state.
func (s *Strategy) spoil(ctx context.Context, index int, cells []result.Cell, err error) error {
	if ctx.Err() != nil || errors.Is(err, testbed.ErrHeld) {
		return errors.Join(cmp.Or(ctx.Err(), err), s.Replace(nil))
	}
	s.spoiled = map[string]bool{}
	for _, c := range cells {
		s.spoiled[c.ID] = c.Role != result.RoleReference && c.State != ""
	}
	if closeErr := s.Replace(s.context.FailedBuild(index, cells, fmt.Errorf("changing the cluster: %w", err))); closeErr != nil {
		return errors.Join(err, closeErr)
	}
	return nil
}

// Collect leaves out of a build whose change could not be made what stands in every state: it has not failed. What went another way than in
// the first visit to its state is misrouted.
func (s *Strategy) Collect(ctx context.Context) ([]result.Trial, error) {
	trials, err := s.Strategy.Collect(ctx)
	if s.spoiled != nil {
		trials = slices.DeleteFunc(trials, func(t result.Trial) bool { return !s.spoiled[t.Cell] })
	}
	s.spoiled = nil
	for i := range trials {
		s.holdToFirst(&trials[i])
	}
	return trials, err
}

// holdToFirst holds the way of a trial's packets against the first visit to its state: a change may be left behind when it is undone.
func (s *Strategy) holdToFirst(t *result.Trial) {
	at := slices.IndexFunc(s.cells, func(c result.Cell) bool { return c.ID == t.Cell })
	if at < 0 || t.Failed != "" || t.Path == nil || t.Path.Encapsulation == "" {
		return
	}
	c := s.cells[at]
	key := fmt.Sprint(plan.FirstState(plan.States(s.cells)[0]), c.Network, c.Setting())
	first, known := s.ways[key]
	switch now := t.Path.Encapsulation; {
	case !known && t.Path.OK:
		s.ways[key] = now
	case known && now != first:
		t.Path.OK = false
		t.Path.Findings = append(t.Path.Findings, fmt.Sprintf(
			"packets between nodes had the encapsulation %s, and %s in the first visit to this state of the cluster: a change that was undone has left something behind", now, first))
	}
}

// restore undoes the change of the build before, once its pods are gone.
func (s *Strategy) restore(ctx context.Context) error {
	if err := s.AwaitRemoval(); err != nil {
		return err
	}
	if s.changed == "" {
		return nil
	}
	err := s.changer.Restore(ctx)
	var left *testbed.RestoreError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &left):
		return fmt.Errorf("restoring the cluster after %s: %w; it is tried once more at the end", testbed.ChangedFor(s.changed), left.Err)
	case err != nil:
		return err
	}
	s.changed = ""
	return nil
}

// Close removes what is up and undoes the change that is made, also for a run that was interrupted.
func (s *Strategy) Close() error {
	err := s.Strategy.Close()
	s.context.Observed.Say(s.notes()...)
	if s.changer == nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), restoreWithin)
	defer cancel()
	err = errors.Join(err, s.changer.Restore(ctx), s.changer.Close())
	s.context.Observed.Say(s.changer.Left()...)
	return err
}

// notes say how long it took until each change was ready, by its own account.
func (s *Strategy) notes() []string {
	var notes []string
	for _, c := range s.context.Changes {
		took := slices.Sorted(slices.Values(s.took[c.Network]))
		if len(took) == 0 {
			continue
		}
		const exact = 10 * time.Millisecond
		notes = append(notes, fmt.Sprintf("the change for %s was ready %v after it was begun (median of %d; %v to %v)",
			testbed.ChangedFor(c.Network), took[len(took)/2].Round(exact), len(took), took[0].Round(exact), took[len(took)-1].Round(exact)))
	}
	return notes
}
