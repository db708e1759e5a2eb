package experiment

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"netdelta/agent"
	"netdelta/experiment/plan"
	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/workload"
)

// Stand is one build of cells, armed side by side, for who observes more of them than a run does: a profile, say. What it
// measures is of no trial. It is not safe for concurrent use.
type Stand struct {
	build *build
	armed []*Armed
}

// Armed is a cell of a stand, ready for bursts.
type Armed struct {
	seat *seat
	// Path is the proof of which way its packets go, nil where nobody could look.
	Path *result.Path
}

// OpenStand sets up the cells of the configuration that can be measured, as build number index, and proves their paths. A
// cell that fails is an error; nothing is left then. The configuration's readers of the machine stay the caller's.
func OpenStand(ctx context.Context, c Config, index int) (*Stand, error) {
	st := newStage(c)
	b, err := st.openBuild(ctx, index, plan.Measured(c.Run.Cells))
	if err != nil {
		return nil, err
	}
	s := &Stand{build: b}
	for _, seat := range b.seats {
		if seat.failed == nil {
			seat.failed = seat.prove(ctx)
		}
		if seat.failed != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", seat.cell.ID, seat.failed), s.Close())
		}
		s.armed = append(s.armed, &Armed{seat: seat, Path: seat.path})
	}
	return s, nil
}

// Armed are the stand's cells.
func (s *Stand) Armed() []*Armed { return s.armed }

// Close takes the stand down. It is idempotent.
func (s *Stand) Close() error {
	var errs []error
	for _, seat := range s.build.seats {
		if seat.meter != nil {
			errs = append(errs, seat.meter.Close(), seat.bounds.Close())
			seat.meter = nil
		}
	}
	return errors.Join(append(errs, s.build.close())...)
}

// Cell is the cell as the run's records have it.
func (a *Armed) Cell() result.Cell { return a.seat.cell }

// Spaces names the network namespaces of the cell's testbed by the numbers of their inodes: pods, nodes and the switch between
// them. Where the testbed does not show them, they are those of the cell's ends.
func (a *Armed) Spaces() (map[uint32]string, error) {
	shows := a.seat.testbed.Instruments()
	names := map[uint32]string{}
	if shows.Observer == nil || shows.Within == nil {
		for _, end := range []*agent.Agent{a.seat.client, a.seat.server} {
			var s unix.Stat_t
			if err := unix.Stat(fmt.Sprintf("/proc/%d/ns/net", end.PID()), &s); err != nil {
				return nil, fmt.Errorf("find the network namespace of %s: %w", end.Pod().Name(), err)
			}
			names[uint32(s.Ino)] = end.Pod().Name()
		}
		return names, nil
	}
	numbers, err := SpaceNumbers(shows)
	for number, space := range numbers {
		names[number] = space.String()
	}
	return names, err
}

// SpaceNumbers finds the network namespaces of a testbed on this machine by the numbers of their inodes, as tracers and
// profilers see them.
func SpaceNumbers(shows testbed.Instruments) (map[uint32]network.Space, error) {
	numbers := map[uint32]network.Space{}
	for _, space := range shows.Observer.Plan().Spaces() {
		err := shows.Within(space.String(), func(fd int) error {
			var s unix.Stat_t
			if err := unix.Fstat(fd, &s); err != nil {
				return fmt.Errorf("find the number of %s: %w", space, err)
			}
			numbers[uint32(s.Ino)] = space
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return numbers, nil
}

// Burst runs the workload for as long as asked, or as its programs need, after a warm-up of a fifth of that; nothing is recorded.
func (a *Armed) Burst(ctx context.Context, length time.Duration) (workload.Burst, error) {
	b, err := a.seat.client.Burst(ctx, a.seat.session, paceOf(length, 0, a.seat.demand).spec())
	if err != nil {
		return b, fmt.Errorf("burst of %s: %w", a.seat.cell.ID, err)
	}
	return b, nil
}
