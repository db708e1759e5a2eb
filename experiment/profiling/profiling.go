// Package profiling takes profiles of the processors while cells of a study run, in bursts of their own: what is timed is
// never profiled.
package profiling

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"time"

	"netdelta/experiment"
	"netdelta/experiment/measure"
	"netdelta/probe/flame"
	"netdelta/result"
)

// BurstLength is how long the workload runs for one profile: long enough that its beginning and end don't count.
const BurstLength = 200 * time.Millisecond

// Profiled is what the processors did while one cell ran.
type Profiled struct {
	Cell    result.Cell
	Profile flame.Profile
	// Transactions and Moved are what was done meanwhile, warm-up included; Moved is bytes of payload.
	Transactions, Moved int64
}

// Take profiles each cell of the configuration in turn, in random order, round after round until the time is up, at least
// once each. The other cells' networks are up and idle meanwhile.
func Take(ctx context.Context, c experiment.Config, lasting time.Duration) ([]Profiled, error) {
	profiler, err := flame.Open()
	if err != nil {
		return nil, err
	}
	taken, err := take(ctx, c, lasting, profiler)
	return taken, errors.Join(err, profiler.Close())
}

func take(ctx context.Context, c experiment.Config, lasting time.Duration, profiler *flame.Profiler) ([]Profiled, error) {
	build, err := measure.NewContext(c.Config, c.Run).OpenProven(ctx, 0, c.Run.Cells)
	if err != nil {
		return nil, err
	}
	taken, err := rounds(ctx, build.Sessions, c.Run.Seed, lasting, profiler)
	return taken, errors.Join(err, build.Close())
}

// rounds visits the cells until the time is up.
func rounds(ctx context.Context, sessions []*measure.Session, seed uint64, lasting time.Duration, profiler *flame.Profiler) ([]Profiled, error) {
	names := map[uint32]string{}
	for _, s := range sessions {
		own, err := s.Spaces()
		if err != nil {
			return nil, err
		}
		maps.Copy(names, own)
	}
	taken := make([]Profiled, len(sessions))
	random := rand.New(rand.NewPCG(seed, 0))
	for began := time.Now(); ; {
		for _, i := range random.Perm(len(sessions)) {
			one, err := burst(ctx, sessions[i], profiler, names)
			if err != nil {
				return nil, err
			}
			taken[i] = taken[i].with(one)
		}
		if time.Since(began) >= lasting {
			return taken, nil
		}
	}
}

// with adds what another burst of the same cell gave.
func (p Profiled) with(more Profiled) Profiled {
	more.Profile = flame.Add(p.Profile, more.Profile)
	more.Transactions += p.Transactions
	more.Moved += p.Moved
	return more
}

func burst(ctx context.Context, s *measure.Session, profiler *flame.Profiler, names map[uint32]string) (Profiled, error) {
	if err := profiler.Start(); err != nil {
		return Profiled{}, err
	}
	b, err := s.BurstUnrecorded(ctx, BurstLength)
	p, stopErr := profiler.Stop(ctx, names)
	if err := errors.Join(err, stopErr); err != nil {
		return Profiled{}, err
	}
	return Profiled{Cell: s.Cell, Profile: p, Transactions: b.Work, Moved: b.Moved}, nil
}
