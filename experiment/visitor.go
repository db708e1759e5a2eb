package experiment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"netdelta/agent"
	"netdelta/experiment/plan"
	"netdelta/probe/pressure"
	"netdelta/result"
)

// calibrationRounds is how many rounds at the start of a run set the thresholds of disturbance.
const calibrationRounds = 5

// visitor runs bursts over seats, and judges by what the machine did meanwhile whether they can be trusted.
type visitor struct {
	seed    uint64
	blocks  bool // the networks are swapped live
	ward    *ward
	clock   func() time.Duration // since the start of the run
	machine watch
	seen    *sightings
	// usual is what rounds are held against, by the classes of service among their cells: neighbours are a load.
	usual map[string]*calibration
}

// calibration finds out what is usual: loads are the rounds seen so far; threshold holds once there are enough of them.
type calibration struct {
	loads     []pressure.Load
	threshold *pressure.Threshold
}

// warm runs each seat briefly without a record, since the first burst after a set-up resolves addresses and fills caches, and
// proves its path meanwhile.
func (v *visitor) warm(ctx context.Context, seats []*seat) error {
	for _, s := range seats {
		if s.failed != nil {
			continue
		}
		err := s.proveFirst(ctx)
		if err == nil {
			err = s.follow(ctx)
		}
		v.seen.lack(s.meter.Lacks())
		if err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if words, _ := s.ailment(ctx); words != "" {
				s.recordUnwell(0, v.clock(), words)
				continue
			}
			fail(seats, s, fmt.Errorf("first burst of %s: %w", s.cell.ID, err))
		}
	}
	return beginAudits(ctx, seats)
}

// round visits each seat once, in random order, and then judges the round as a whole. The spans are in the order of seats.
func (v *visitor) round(ctx context.Context, build int, seats []*seat, round int) (spans []time.Duration, disturbed bool, err error) {
	if err := v.machine.begin(ctx, seats); err != nil {
		return nil, false, err
	}
	spans = make([]time.Duration, len(seats))
	for _, i := range plan.Order(v.seed, build, round, len(seats)) {
		s := seats[i]
		if s.failed != nil || s.broken || v.ward.lost[s.charge()] != "" {
			continue
		}
		start := v.clock()
		if err := s.burst(ctx, s.pace.spec(), round, start); err != nil {
			if ctx.Err() != nil {
				return nil, false, ctx.Err()
			}
			if words, _ := s.ailment(ctx); words != "" {
				s.recordUnwell(round, start, words)
				continue
			}
			fail(seats, s, fmt.Errorf("burst of %s: %w", s.cell.ID, err))
		}
		spans[i] = v.clock() - start
	}
	load, err := v.machine.end(ctx)
	if err != nil {
		return nil, false, err
	}
	v.seen.lack(v.machine.lacks())
	v.tend(ctx, seats, round)
	reason := v.usually(seats).judge(v.telling(seats, load))
	if reason == "" {
		return spans, false, nil
	}
	for _, s := range seats {
		s.markRound(round, reason)
	}
	return spans, true, nil
}

// telling is what a load says of seats. Under live swaps a round is of one network: where programs are measured, it is the
// network that makes them wait for processors, or not, and only what comes from outside tells of a disturbance.
func (v *visitor) telling(seats []*seat, load pressure.Load) pressure.Load {
	if !v.blocks || !slices.ContainsFunc(seats, (*seat).served) {
		return load
	}
	return pressure.Load{Steal: load.Steal, Throttled: load.Throttled, Throttles: load.Throttles}
}

// tend asks the servers of seats how they are after a round. The bursts of those that were unwell don't count; daemons that have
// ended are started again, once.
func (v *visitor) tend(ctx context.Context, seats []*seat, round int) {
	for _, s := range seats {
		if s.cluster != nil || s.failed != nil || !s.served() || v.ward.lost[s.charge()] != "" {
			continue
		}
		words, ended := s.ailment(ctx)
		if ctx.Err() != nil || words == "" && !s.broken {
			continue
		}
		s.markRound(round, Unwell+words)
		if ended && !v.ward.died(s.charge(), words) {
			continue
		}
		var err error
		if ended {
			err = s.services[0].restart(ctx)
		}
		if err == nil && (ended || s.broken) {
			err = s.reopen(ctx)
		}
		if err != nil && ctx.Err() == nil {
			fail(seats, s, fmt.Errorf("%s after its service was unwell (%s): %w", s.cell.ID, words, err))
		}
	}
}

// usually is the calibration for rounds of these seats.
func (v *visitor) usually(seats []*seat) *calibration {
	var classes []string
	for _, s := range seats {
		classes = append(classes, s.cell.Params.Conditions.QoS)
		if s.served() {
			classes = append(classes, s.cell.Workload)
		}
	}
	slices.Sort(classes)
	key := strings.Join(slices.Compact(classes), " ")
	if v.usual == nil {
		v.usual = map[string]*calibration{}
	}
	if v.usual[key] == nil {
		v.usual[key] = &calibration{}
	}
	return v.usual[key]
}

// judge calibrates on the first rounds of the run, then gives the reason why a round can't be trusted, or "".
func (c *calibration) judge(load pressure.Load) string {
	if c.threshold != nil {
		return c.threshold.Disturbed(load)
	}
	c.loads = append(c.loads, load)
	if len(c.loads) == calibrationRounds {
		t := pressure.Calibrate(c.loads)
		c.threshold = &t
	}
	return ""
}

// fail takes a seat out of the build. When its agent is gone, so are all seats that the agent served.
func fail(seats []*seat, s *seat, err error) {
	s.failed = err
	if !errors.Is(err, agent.ErrGone) && s.client.Alive() && s.server.Alive() {
		return
	}
	for _, o := range seats {
		if o.failed == nil && (!o.client.Alive() || !o.server.Alive()) {
			why := o.loss()
			if why == nil {
				why = err
			}
			o.failed = fmt.Errorf("%s: its pod was lost: %w", o.cell.ID, why)
		}
	}
}

// collectTrials closes the accounts of seats.
func collectTrials(ctx context.Context, build int, seats []*seat) []result.Trial {
	explain(ctx, seats)
	trials := make([]result.Trial, len(seats))
	for i, s := range seats {
		trials[i] = s.trial(ctx, build)
	}
	audit(ctx, seats, trials)
	return trials
}
