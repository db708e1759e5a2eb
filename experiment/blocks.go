package experiment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"netdelta/result"
	"netdelta/testbed"
)

// settle is how long a swapped network is left alone before it is measured: neighbours resolve, bridges learn.
const settle = 50 * time.Millisecond

// swapper measures in blocks: pods and agents start once, the networks are swapped beneath them, and each visit to a
// network measures all of its cells. A block visits every network once in random order, the baseline twice; each visit sets
// its network up afresh, so a block is also a build, and has one round for the scheduler: the pass over all cells.
type swapper struct {
	stage   *stage
	visitor *visitor
	bursts  int // of each cell in each visit
	beds    map[underlay]*swapBed

	index int
	cells []result.Cell // of the block under way
	seats []*seat       // of the networks visited so far
	done  []result.Trial
}

// swapBed is a testbed whose pods outlive its networks, with the agents in them.
type swapBed struct {
	tb   testbed.Testbed
	crew crew
	held build
}

func newSwapper(st *stage, v *visitor, bursts int) *swapper {
	return &swapper{stage: st, visitor: v, bursts: bursts, beds: map[underlay]*swapBed{}}
}

// prepare has nothing to do ahead of time: the next block swaps the networks that are up now.
func (w *swapper) prepare(context.Context, int, []result.Cell) {}

func (w *swapper) begin(_ context.Context, index int, cells []result.Cell) error {
	w.index, w.cells, w.done = index, cells, nil
	return nil
}

// round is the pass over all networks. Disturbed bursts are marked one by one; the pass is never repeated as a whole.
func (w *swapper) round(ctx context.Context, _ int) (spans []time.Duration, disturbed bool, err error) {
	groups, order := w.stage.group(w.index, w.cells)
	spans = make([]time.Duration, len(w.cells))
	for _, g := range order {
		start := w.visitor.clock()
		if err := w.visit(ctx, g, groups[g]); err != nil {
			return nil, false, err
		}
		share := (w.visitor.clock() - start) / time.Duration(len(groups[g]))
		for _, c := range groups[g] {
			spans[slices.IndexFunc(w.cells, func(o result.Cell) bool { return o.ID == c.ID })] = share
		}
	}
	return spans, false, nil
}

// visit swaps a network in, measures its cells and closes their accounts.
func (w *swapper) visit(ctx context.Context, g group, cells []result.Cell) error {
	w.seats = w.swapIn(ctx, g, cells)
	err := ctx.Err()
	if err == nil {
		err = w.visitor.warm(ctx, w.seats)
	}
	for burst := 0; err == nil && burst < w.bursts; burst++ {
		_, _, err = w.visitor.round(ctx, w.index, w.seats, burst)
	}
	// What was measured is kept even when the run is being interrupted.
	w.done = append(w.done, collectTrials(context.WithoutCancel(ctx), w.index, w.seats)...)
	for _, s := range w.seats {
		if s.failed == nil {
			s.disarm(ctx)
		}
	}
	return err
}

// swapIn puts the network under the pods and arms its cells.
func (w *swapper) swapIn(ctx context.Context, g group, cells []result.Cell) []*seat {
	seats := w.stage.newSeats(cells)
	bed, opened, err := w.bed(ctx, g)
	if err == nil && !opened {
		err = bed.tb.Swap(ctx, g.network)
	}
	if err == nil {
		err = w.stage.seen.look(ctx, bed.tb)
	}
	if err != nil {
		return failAll(seats, fmt.Errorf("swapping in network %s: %w", g.network, err))
	}
	select {
	case <-time.After(settle):
	case <-ctx.Done():
	}
	return w.stage.armAll(ctx, seats, bed.crew, bed.tb)
}

// bed is the testbed with a group's underlay. It is opened, with the group's network, when it is first needed; one whose agents
// were lost is replaced.
func (w *swapper) bed(ctx context.Context, g group) (bed *swapBed, opened bool, err error) {
	if bed := w.beds[g.underlay]; bed != nil {
		if bed.crew.alive() {
			return bed, false, nil
		}
		delete(w.beds, g.underlay)
		if err := bed.held.close(); err != nil {
			return nil, false, err
		}
	}
	spec := w.stage.specOf(g)
	spec.PodsOutlive = true
	tb, err := w.stage.driver.Open(ctx, spec)
	if err != nil {
		return nil, false, err
	}
	bed = &swapBed{tb: tb}
	bed.held.keep(tb)
	if bed.crew, err = w.stage.startAgents(ctx, &bed.held, tb, w.cells); err != nil {
		return nil, false, errors.Join(err, bed.held.close())
	}
	w.beds[g.underlay] = bed
	return bed, true, nil
}

func (w *swapper) collect(context.Context) ([]result.Trial, error) {
	done := w.done
	w.done = nil
	return done, nil
}

func (w *swapper) close() error {
	var errs []error
	for u, bed := range w.beds {
		errs = append(errs, bed.held.close())
		delete(w.beds, u)
	}
	return errors.Join(errs...)
}

// alive says whether all agents of the crew still take calls.
func (c crew) alive() bool {
	for _, a := range c.servers {
		if !a.Alive() {
			return false
		}
	}
	return c.client.Alive()
}
