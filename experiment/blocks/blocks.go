// Package blocks is the strategy that swaps networks live under the same pods. Pods and agents start once, and each visit to a network
// measures all of its cells. A block visits every network once in random order, the baseline twice. Each visit sets its network up
// afresh, so a block is also a build, and has one round for the scheduler: the pass over all cells.
package blocks

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"netdelta/experiment/measure"
	"netdelta/result"
)

// Strategy measures in blocks.
type Strategy struct {
	context *measure.Context
	rounds  *measure.Rounds
	beds    *measure.Beds
	left    func() time.Duration

	index int
	cells []result.Cell // of the block under way
	done  []result.Trial
}

// New returns the strategy of a run; left tells how much time the run has.
func New(m *measure.Context, r *measure.Rounds, left func() time.Duration) *Strategy {
	return &Strategy{context: m, rounds: r, beds: measure.NewBeds(m), left: left}
}

// Once is what was spent since the last call on beds and clusters, which serve the whole run.
func (s *Strategy) Once() time.Duration { return s.beds.Spent() }

// Renewal is nothing: beds are opened when they are first needed.
func (s *Strategy) Renewal() time.Duration { return 0 }

// Prepare has nothing to do ahead of time: the next block swaps the networks that are up now.
func (s *Strategy) Prepare(context.Context, int, []result.Cell) {}

// Begin starts the clusters that the cells need and that are not there yet. A bed that can't be opened is tried again for each
// network, whose cells then say why.
func (s *Strategy) Begin(ctx context.Context, index int, cells []result.Cell) error {
	s.index, s.cells, s.done = index, cells, nil
	for _, g := range s.context.Groups(index, cells) {
		if slices.ContainsFunc(cells, func(c result.Cell) bool {
			return measure.GroupOf(c).Underlay == g.Underlay && s.context.Clustered(c)
		}) {
			_ = s.beds.StartClusters(ctx, g, cells)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

// Round is the pass over all networks. Disturbed bursts are marked one by one; the pass is never repeated as a whole.
func (s *Strategy) Round(ctx context.Context, _ int) (spans []time.Duration, disturbed bool, err error) {
	took := map[string]time.Duration{} // by cell
	for _, g := range s.context.Groups(s.index, s.cells) {
		start := time.Now()
		if err := s.visit(ctx, g); err != nil {
			return nil, false, err
		}
		whole, all := time.Since(start), time.Duration(0)
		for _, c := range g.Cells {
			all += s.context.VisitCost(c)
		}
		for _, c := range g.Cells {
			took[c.ID] = time.Duration(float64(s.context.VisitCost(c)) / float64(all) * float64(whole))
		}
	}
	for _, c := range s.cells {
		spans = append(spans, took[c.ID])
	}
	return spans, false, nil
}

// visit swaps a network in, measures its cells and closes their accounts.
func (s *Strategy) visit(ctx context.Context, g measure.Group) error {
	if g.Cells = s.beds.Usable(g); len(g.Cells) == 0 {
		return nil
	}
	sessions := s.beds.SwapIn(ctx, g, s.cells)
	err := ctx.Err()
	start := time.Now()
	if err == nil {
		err = s.rounds.Warm(ctx, sessions)
	}
	if err == nil {
		err = s.measure(ctx, sessions)
	}
	if unwell := discardUnwell(ctx, sessions); err == nil && len(unwell) > 0 && s.left() > 2*time.Since(start) {
		err = s.again(ctx, unwell)
	}
	// What was measured is kept even when the run is being interrupted.
	trials := measure.Collect(context.WithoutCancel(ctx), s.index, sessions)
	if ctx.Err() != nil { // what failed has failed for that
		trials = slices.DeleteFunc(trials, func(t result.Trial) bool { return len(t.Bursts.Round) == 0 })
	}
	s.done = append(s.done, trials...)
	for _, o := range sessions {
		if o.Failed == nil {
			o.Close(ctx)
		}
	}
	return err
}

// measure runs the bursts of sessions.
func (s *Strategy) measure(ctx context.Context, sessions []*measure.Session) error {
	for burst := 0; ; burst++ {
		due := slices.DeleteFunc(slices.Clone(sessions), func(o *measure.Session) bool { return o.Size.Visit <= burst })
		if len(due) == 0 {
			return nil
		}
		if _, _, err := s.rounds.Run(ctx, s.index, due, burst); err != nil {
			return err
		}
	}
}

// discardUnwell discards the bursts of sessions whose cluster was unwell while they were measured, or is now, and returns these
// sessions, unless ctx has ended.
func discardUnwell(ctx context.Context, sessions []*measure.Session) []*measure.Session {
	var unwell []*measure.Session
	ailments := map[string]string{}
	for _, o := range sessions {
		if !o.SharesServices() || o.Failed != nil {
			continue
		}
		key := o.ServiceKey()
		if _, asked := ailments[key]; !asked {
			ailments[key], _ = o.Check(ctx)
		}
		if ailments[key] != "" || o.Broken() {
			o.Discard(cmp.Or(ailments[key], "during a burst"))
			unwell = append(unwell, o)
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	return unwell
}

// again measures sessions once more whose services were unwell, when they are well again.
func (s *Strategy) again(ctx context.Context, sessions []*measure.Session) error {
	var ready []*measure.Session
	for _, o := range sessions {
		err := o.Recover(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			o.Failed = fmt.Errorf("%s again, after its services were unwell: %w", o.Cell.ID, err)
			continue
		}
		ready = append(ready, o)
	}
	err := s.measure(ctx, ready)
	for _, o := range ready {
		if ailment, _ := o.Check(ctx); ailment != "" && ctx.Err() == nil {
			o.Discard(ailment)
		}
	}
	return err
}

// LeaveOut does nothing: cells are left out between blocks alone.
func (s *Strategy) LeaveOut([]string) {}

// Collect gives the trials of the block.
func (s *Strategy) Collect(context.Context) ([]result.Trial, error) {
	done := s.done
	s.done = nil
	return done, nil
}

// Close removes the beds.
func (s *Strategy) Close() error { return s.beds.Close() }
