package experiment

import (
	"context"
	"errors"
	"slices"
	"time"

	"netdelta/result"
)

// pipeline measures in bursts over networks that are up side by side. While one build is measured the next is set up and
// the last is removed, on processors that the workload does not use, so that rebuilding costs no measuring time.
type pipeline struct {
	stage   *stage
	visitor *visitor
	current *build
	ahead   *pending
	removed chan error // one slot: the removal that is under way
}

// pending is a build that is being set up.
type pending struct {
	index int
	done  chan struct{}
	build *build
	err   error
}

func newPipeline(st *stage, v *visitor) *pipeline {
	return &pipeline{stage: st, visitor: v}
}

// once is nothing: each build is set up anew.
func (p *pipeline) once() time.Duration { return 0 }

// prepare waits where servers have programs and memory, and where pods are started on the machines that are measured: that would
// disturb what is measured meanwhile.
func (p *pipeline) prepare(ctx context.Context, index int, cells []result.Cell) {
	if !p.stage.able.OwnsNodes || p.stage.serves(cells) {
		return
	}
	next := &pending{index: index, done: make(chan struct{})}
	p.ahead = next
	go func() {
		defer close(next.done)
		next.build, next.err = p.stage.openBuild(ctx, index, cells)
	}()
}

func (p *pipeline) begin(ctx context.Context, index int, cells []result.Cell) error {
	var err error
	if p.current, err = p.take(ctx, index, cells); err != nil {
		return err
	}
	if !p.stage.able.OwnsNodes { // the pods of the build before have to be gone when this one is measured
		if err := p.awaitRemoval(); err != nil {
			return err
		}
	}
	return p.visitor.warm(ctx, p.current.seats)
}

// take hands over the build that was prepared when it is the wanted one, else it sets one up now.
func (p *pipeline) take(ctx context.Context, index int, cells []result.Cell) (*build, error) {
	ahead := p.ahead
	p.ahead = nil
	if ahead == nil {
		return p.stage.openBuild(ctx, index, cells)
	}
	<-ahead.done
	if ahead.err != nil {
		return nil, ahead.err
	}
	if ahead.index == index && ahead.build.pick(cells) {
		return ahead.build, nil
	}
	if err := ahead.build.close(); err != nil {
		return nil, err
	}
	return p.stage.openBuild(ctx, index, cells)
}

// pick puts the build's seats in the order of the cells and drops those of other cells. It says whether all were there.
func (b *build) pick(cells []result.Cell) bool {
	seats := make([]*seat, len(cells))
	for i, c := range cells {
		at := slices.IndexFunc(b.seats, func(s *seat) bool { return s.cell.ID == c.ID })
		if at < 0 {
			return false
		}
		seats[i] = b.seats[at]
	}
	b.seats = seats
	return true
}

func (p *pipeline) round(ctx context.Context, round int) ([]time.Duration, bool, error) {
	return p.visitor.round(ctx, p.current.index, p.current.seats, round)
}

func (p *pipeline) collect(ctx context.Context) ([]result.Trial, error) {
	b := p.current
	p.current = nil
	if b == nil {
		return nil, nil
	}
	trials := collectTrials(ctx, b.index, b.seats)
	err := p.remove(b)
	if slices.ContainsFunc(b.seats, (*seat).served) {
		err = errors.Join(err, p.awaitRemoval()) // the next build's servers take the memory of this one's
	}
	return trials, err
}

// remove takes a build away in the background, after the removal before it has ended.
func (p *pipeline) remove(b *build) error {
	err := p.awaitRemoval()
	p.removed = make(chan error, 1)
	go func(done chan<- error) { done <- b.close() }(p.removed)
	return err
}

func (p *pipeline) awaitRemoval() error {
	if p.removed == nil {
		return nil
	}
	err := <-p.removed
	p.removed = nil
	return err
}

func (p *pipeline) close() error {
	var errs []error
	if p.ahead != nil {
		<-p.ahead.done
		if p.ahead.build != nil {
			errs = append(errs, p.ahead.build.close())
		}
		p.ahead = nil
	}
	if p.current != nil {
		errs = append(errs, p.current.close())
		p.current = nil
	}
	return errors.Join(append(errs, p.awaitRemoval())...)
}
