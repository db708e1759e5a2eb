package measure

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"netdelta/testbed"
)

// served is the processor time of a server whose clock can't be read from here: its agent tells it, before and after what is the
// session's own there. That is a round of a server's own threads, and a burst where all programs of the agent count.
type served struct {
	told   told
	before time.Duration
}

// told says around what a server's time is told.
type told int

const (
	never told = iota
	eachRound
	eachBurst
)

// spent is what the session's servers have used so far.
func (s *Session) spent(ctx context.Context) (sum time.Duration, around told, err error) {
	around = eachRound
	for _, end := range s.services() {
		used, err := end.Agent.Spent(ctx, end.Session)
		if err != nil {
			return 0, never, fmt.Errorf("processor time of the server of %s: %w", s.Cell.ID, err)
		}
		if sum += used.CPU; !used.Alone {
			around = eachBurst
		}
	}
	return sum, around, nil
}

// askServer finds out whether the time of the session's server is told, and around what.
func (s *Session) askServer(ctx context.Context) {
	s.served = served{}
	if len(s.services()) > 0 && !s.server.Local() {
		_, s.served.told, _ = s.spent(ctx) // whatever keeps it from telling, its clock can't be read
	}
	s.meter.Told(s.served.told != never)
}

// beginServed reads what the servers have used, before a round or a burst.
func (s *Session) beginServed(ctx context.Context, around told) (err error) {
	if s.served.told == around {
		s.served.before, _, err = s.spent(ctx)
	}
	return err
}

// endServed records what they have used since, for the session's burst of the round.
func (s *Session) endServed(ctx context.Context, around told, round int) error {
	last := len(s.bursts.Round) - 1
	if s.served.told != around || last < 0 || s.bursts.Round[last] != round {
		return nil
	}
	now, _, err := s.spent(ctx)
	s.bursts.ServerCPU[last] = max(now-s.served.before, 0).Nanoseconds()
	return err
}

// moved is the error of a session, and says so where its external endpoint is served otherwise than when its testbed was opened: what
// failed may have failed by that. What is known has the testbeds that were asked.
func (s *Session) moved(ctx context.Context, known map[testbed.Testbed]error) error {
	if s.testbed == nil { // it could not be opened
		return s.Failed
	}
	moved := s.testbed.Instruments().Moved
	if _, asked := known[s.testbed]; moved != nil && !asked {
		known[s.testbed] = moved(ctx)
	}
	why := known[s.testbed]
	if s.Failed == nil || why == nil {
		return cmp.Or(s.Failed, why)
	}
	return fmt.Errorf("%w; %w", s.Failed, why)
}
