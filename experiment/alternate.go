package experiment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"netdelta/experiment/study"
	"netdelta/result"
	"netdelta/testbed"
)

// restoreWithin bounds how long a cluster is waited for when the change of a run is undone.
const restoreWithin = 15 * time.Minute

// alternator measures networks for which what the testbed stands on has to be changed. A build is of one state of it: as it was
// found, or under one change; the scheduler has the states take turns. In each build the change is made anew, and the baseline
// stands beside the state's networks in every round, so that each delta has a baseline of its own state and its own rounds.
type alternator struct {
	*pipeline
	changer testbed.Changer
	changes []testbed.Change
	changed string                     // the network whose change is made, or was begun; "" for none
	spoiled bool                       // the change of the build under way could not be made
	took    map[string][]time.Duration // until a change was ready, by network
}

func newAlternator(p *pipeline, changer testbed.Changer, changes []testbed.Change) *alternator {
	return &alternator{pipeline: p, changer: changer, changes: changes, took: map[string][]time.Duration{}}
}

// prepare has nothing to do ahead of time: the next build is of another state.
func (a *alternator) prepare(context.Context, int, []result.Cell) {}

// begin undoes the change of the build before, makes that of this one, and sets the build up. Where a change can't be made its
// networks fail by name, and the run goes on with the others; one that can't be undone ends the run, since nothing that is
// measured after it would be what it is called.
func (a *alternator) begin(ctx context.Context, index int, cells []result.Cell) error {
	if err := a.restore(ctx); err != nil {
		return err
	}
	change, changes := a.changeOf(cells)
	if !changes {
		return a.pipeline.begin(ctx, index, cells)
	}
	if !change.Kept {
		if err := a.apply(ctx, change); err != nil {
			return a.spoil(ctx, index, cells, err)
		}
		return a.pipeline.begin(ctx, index, cells)
	}
	b, err := a.take(ctx, index, cells)
	if err != nil {
		return err
	}
	a.current = b
	if err := a.apply(ctx, change); err != nil {
		if closeErr := b.close(); closeErr != nil {
			return errors.Join(err, closeErr)
		}
		return a.spoil(ctx, index, cells, err)
	}
	if err := a.settle(ctx, b); err != nil {
		return err
	}
	return a.visitor.warm(ctx, b.seats)
}

// settle opens connections anew that were opened before a change: they may have died of it, and what they have learned of
// their path is of the state before.
func (a *alternator) settle(ctx context.Context, b *build) error {
	if !a.stage.able.OwnsNodes {
		if err := a.awaitRemoval(); err != nil {
			return err
		}
	}
	for _, s := range b.seats {
		if s.failed != nil {
			continue
		}
		if err := s.reopen(ctx); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			s.failed = fmt.Errorf("after the change of the cluster: %w", err)
		}
	}
	return nil
}

// changeOf is the change that the networks of a build need.
func (a *alternator) changeOf(cells []result.Cell) (testbed.Change, bool) {
	for _, c := range cells {
		for _, change := range a.changes {
			if c.Role == result.RoleCell && c.Network == change.Network {
				return change, true
			}
		}
	}
	return testbed.Change{}, false
}

// apply makes a change. It is taken for made from the moment it is begun.
func (a *alternator) apply(ctx context.Context, change testbed.Change) error {
	if a.changer == nil {
		return fmt.Errorf("network %s changes the cluster, and this testbed can't be changed", change.Network)
	}
	a.changed = change.Network
	start := time.Now()
	if err := a.changer.Apply(ctx, change); err != nil {
		return err
	}
	a.took[change.Network] = append(a.took[change.Network], time.Since(start))
	return nil
}

// notes say how long it took until each change was ready, by its own account.
func (a *alternator) notes() []string {
	var notes []string
	for _, c := range a.changes {
		took := slices.Sorted(slices.Values(a.took[c.Network]))
		if len(took) == 0 {
			continue
		}
		const exact = 10 * time.Millisecond
		notes = append(notes, fmt.Sprintf("the change for network %s was ready %v after it was begun (median of %d; %v to %v)",
			c.Network, took[len(took)/2].Round(exact), len(took), took[0].Round(exact), took[len(took)-1].Round(exact)))
	}
	return notes
}

// spoil makes a build of cells that failed with the change of their networks. The baseline has no part in it.
func (a *alternator) spoil(ctx context.Context, index int, cells []result.Cell, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(err, testbed.ErrHeld) {
		return err // whatever this run measured would be of what another one does
	}
	seats := a.stage.newSeats(cells)
	a.current, a.spoiled = &build{index: index, seats: failAll(seats, fmt.Errorf("changing the cluster: %w", err))}, true
	return nil
}

// collect leaves the baseline out of a build whose change could not be made: it has not failed.
func (a *alternator) collect(ctx context.Context) ([]result.Trial, error) {
	trials, err := a.pipeline.collect(ctx)
	if a.spoiled {
		trials = slices.DeleteFunc(trials, func(t result.Trial) bool { return t.Role != result.RoleCell })
	}
	a.spoiled = false
	return trials, err
}

// restore undoes the change of the build before, once its pods are gone.
func (a *alternator) restore(ctx context.Context) error {
	if err := a.awaitRemoval(); err != nil {
		return err
	}
	if a.changed == "" {
		return nil
	}
	err := a.changer.Restore(ctx)
	var left *testbed.RestoreError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &left):
		return fmt.Errorf("restoring the cluster after network %s: %w; it is tried once more at the end", a.changed, left.Err)
	case err != nil:
		return err
	}
	a.changed = ""
	return nil
}

// close removes what is up and undoes the change that is made, also for a run that was interrupted.
func (a *alternator) close() error {
	err := a.pipeline.close()
	a.stage.seen.say(a.notes())
	if a.changer == nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), restoreWithin)
	defer cancel()
	return errors.Join(err, a.changer.Restore(ctx), a.changer.Close())
}

// usedBy is the testbed's own network by which servers are reached on a network of the study, and how its packets must be seen.
func usedBy(changes []testbed.Change, network string) (uses string, expect testbed.Encapsulation) {
	for _, c := range changes {
		if c.Network == network {
			return c.Uses, c.Expect
		}
	}
	return network, ""
}

// changeTakes is what it takes to change a cluster and to restore it, as guessed.
const changeTakes = 15 * time.Second

// alternate plans with networks that change the cluster: those of one state are measured in builds of their own.
func (p *Plan) alternate(s *study.Study) {
	p.Blocks = false
	if s.Design.Blocks > 0 {
		p.FixBuilds(s.Design.Blocks)
	}
	var found []string
	states := map[int][]string{} // by the first of the changes that come to the same
	var order []int
	for _, n := range s.Networks {
		change, changes := s.Change(n)
		switch {
		case n == s.Baseline:
		case !changes:
			found = append(found, n)
		default:
			at := slices.IndexFunc(s.Changes, change.Same)
			if states[at] == nil {
				order = append(order, at)
			}
			states[at] = append(states[at], n)
		}
	}
	if len(found) > 0 {
		p.Rules.Apart = append(p.Rules.Apart, found)
	}
	var names []string
	for _, at := range order {
		p.Rules.Apart = append(p.Rules.Apart, states[at])
		names = append(names, states[at]...)
	}
	p.Notes = append(p.Notes, fmt.Sprintf("the cluster was changed for %s: each change was made anew in builds of its own, in which %s stood in every round, and undone after each",
		strings.Join(names, ", "), s.Baseline))
}

// refuseClustered takes out workloads whose servers are started once for all networks: they would have to live through the changes.
func (p *Plan) refuseClustered() {
	for i, c := range p.Cells {
		if p.demands[c.ID].Cluster != nil && c.Unsupported == "" {
			p.Cells[i].Unsupported = fmt.Sprintf("workload %s is unsupported in a study that changes the cluster: its servers are started once; measure it in a study of its own", c.Workload)
		}
	}
}
