// Package sidebyside is the strategy that measures in bursts over networks that are up side by side. While one build is measured, the
// next is set up and the last is removed, on processors that the workload does not use, so that rebuilding costs no measuring time.
package sidebyside

import (
	"context"
	"errors"
	"slices"
	"time"

	"netdelta/experiment/measure"
	"netdelta/result"
)

// Strategy measures in rounds over builds.
type Strategy struct {
	context *measure.Context
	rounds  *measure.Rounds
	current *measure.Build
	ahead   *pending
	removed chan error // one slot: the removal that is under way
}

// pending is a build that is being set up.
type pending struct {
	index int
	stop  context.CancelFunc
	done  chan struct{}
	build *measure.Build
	err   error
}

// New returns the strategy of a run.
func New(m *measure.Context, r *measure.Rounds) *Strategy { return &Strategy{context: m, rounds: r} }

// Once is what was spent since the last call on pods that serve several builds.
func (s *Strategy) Once() time.Duration { return s.context.SpentOnPods() }

// Renewal is how long the next build will wait for new pods in addition to its usual set-up.
func (s *Strategy) Renewal() time.Duration { return s.context.PodsDue() }

// Prepare sets the next build up in the background, unless that would disturb what is measured meanwhile: where servers have programs
// and memory, and where pods are started on the machines that are measured.
func (s *Strategy) Prepare(ctx context.Context, index int, cells []result.Cell) {
	if !s.context.OwnsNodes() || s.context.StartsPrograms(cells) {
		return
	}
	ctx, stop := context.WithCancel(ctx)
	next := &pending{index: index, stop: stop, done: make(chan struct{})}
	s.ahead = next
	go func() {
		defer close(next.done)
		next.build, next.err = s.context.OpenBuild(ctx, index, cells)
	}()
}

// Begin sets the build up and warms it.
func (s *Strategy) Begin(ctx context.Context, index int, cells []result.Cell) error {
	if _, err := s.Open(ctx, index, cells); err != nil {
		return err
	}
	return s.Warm(ctx)
}

// Open sets the build up, or takes the one that was prepared when it is the wanted one.
func (s *Strategy) Open(ctx context.Context, index int, cells []result.Cell) (*measure.Build, error) {
	ahead := s.ahead
	s.ahead = nil
	if ahead != nil {
		<-ahead.done
		defer ahead.stop()
		if ahead.err != nil {
			return nil, ahead.err
		}
		if ahead.index == index && ahead.build.Pick(cells) {
			s.current = ahead.build
			return s.current, nil
		}
		if err := ahead.build.Close(); err != nil {
			return nil, err
		}
	}
	if !s.context.OwnsNodes() {
		// Its pods serve this build too, or have to be gone before something is measured on their nodes.
		if err := s.AwaitRemoval(); err != nil {
			return nil, err
		}
	}
	var err error
	s.current, err = s.context.OpenBuild(ctx, index, cells)
	return s.current, err
}

// Warm runs the first bursts of the build.
func (s *Strategy) Warm(ctx context.Context) error {
	return s.rounds.Warm(ctx, s.current.Sessions)
}

// Replace closes the build that was opened, if one was, and puts another in its place.
func (s *Strategy) Replace(b *measure.Build) error {
	old := s.current
	s.current = b
	if old == nil {
		return nil
	}
	return old.Close()
}

// Round runs one burst in each session.
func (s *Strategy) Round(ctx context.Context, round int) ([]time.Duration, bool, error) {
	return s.rounds.Run(ctx, s.current.Index, s.current.Active(), round)
}

// LeaveOut takes cells out of the build.
func (s *Strategy) LeaveOut(cells []string) {
	if s.current != nil {
		s.current.LeaveOut(cells)
	}
}

// Collect gives the trials of the build and removes it in the background.
func (s *Strategy) Collect(ctx context.Context) ([]result.Trial, error) {
	b := s.current
	s.current = nil
	if b == nil {
		return nil, nil
	}
	trials := b.Collect(ctx)
	err := s.AwaitRemoval()
	s.removed = make(chan error, 1)
	go func(done chan<- error) { done <- b.Close() }(s.removed)
	if slices.ContainsFunc(b.Sessions, (*measure.Session).HasServices) {
		err = errors.Join(err, s.AwaitRemoval()) // the next build's servers take the memory of this one's
	}
	return trials, err
}

// AwaitRemoval waits until the build before is gone.
func (s *Strategy) AwaitRemoval() error {
	if s.removed == nil {
		return nil
	}
	err := <-s.removed
	s.removed = nil
	return err
}

// Close removes everything that is up or under way.
func (s *Strategy) Close() error {
	var errs []error
	if s.ahead != nil {
		s.ahead.stop() // what it waits for is of no more use
		<-s.ahead.done
		if s.ahead.build != nil {
			errs = append(errs, s.ahead.build.Close())
		}
		s.ahead = nil
	}
	return errors.Join(append(errs, s.Replace(nil), s.AwaitRemoval(), s.context.CloseKept())...)
}
