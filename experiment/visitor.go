package experiment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"netdelta/experiment/plan"
	"netdelta/internal/agent"
	"netdelta/probe/pressure"
	"netdelta/result"
	"netdelta/workload"
)

// warmupShare is the part of a burst's length that is run before it and thrown away, to fill caches and congestion
// windows after the pause between two bursts of a cell: one part in so many.
const warmupShare = 5

// hangAfter is how long a burst may take beyond its length before its pod is given up.
const hangAfter = 5 * time.Second

// calibrationRounds is how many rounds at the start of a run set the thresholds of disturbance.
const calibrationRounds = 5

// visitor runs bursts over seats, and judges by what the machine did meanwhile whether they can be trusted.
type visitor struct {
	seed    uint64
	burst   time.Duration
	clock   func() time.Duration // since the start of the run
	machine *pressure.Reader
	seen    *sightings
	// usual is what rounds are held against, by the classes of service among their cells: neighbours are a load.
	usual map[string]*calibration
}

// calibration finds out what is usual: loads are the rounds seen so far; threshold holds once there are enough of them.
type calibration struct {
	loads     []pressure.Load
	threshold *pressure.Threshold
}

// spec is the form of every burst.
func (v *visitor) spec() workload.BurstSpec {
	return workload.BurstSpec{Duration: v.burst, Warmup: v.burst / warmupShare, Deadline: v.burst + hangAfter}
}

// warm runs each seat briefly without a record, since the first burst after a set-up resolves addresses and fills caches, and
// proves its path meanwhile.
func (v *visitor) warm(ctx context.Context, seats []*seat) error {
	for _, s := range seats {
		if s.failed != nil {
			continue
		}
		err := s.prove(ctx, v.burst)
		if err == nil {
			err = s.follow(ctx)
		}
		v.seen.lack(s.meter.Lacks())
		if err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			fail(seats, s, fmt.Errorf("first burst of %s: %w", s.cell.ID, err))
		}
	}
	return beginAudits(ctx, seats)
}

// round visits each seat once, in random order, and then judges the round as a whole. The spans are in the order of seats.
func (v *visitor) round(ctx context.Context, build int, seats []*seat, round int) (spans []time.Duration, disturbed bool, err error) {
	before, err := v.machine.Read()
	if err != nil {
		return nil, false, err
	}
	spec := v.spec()
	spans = make([]time.Duration, len(seats))
	for _, i := range plan.Order(v.seed, build, round, len(seats)) {
		s := seats[i]
		if s.failed != nil {
			continue
		}
		start := v.clock()
		if err := s.burst(ctx, spec, round, start); err != nil {
			if ctx.Err() != nil {
				return nil, false, ctx.Err()
			}
			fail(seats, s, fmt.Errorf("burst of %s: %w", s.cell.ID, err))
		}
		spans[i] = v.clock() - start
	}
	after, err := v.machine.Read()
	if err != nil {
		return nil, false, err
	}
	reason := v.usually(seats).judge(after.Since(before))
	if reason == "" {
		return spans, false, nil
	}
	for _, s := range seats {
		s.markRound(round, reason)
	}
	return spans, true, nil
}

// usually is the calibration for rounds of these seats.
func (v *visitor) usually(seats []*seat) *calibration {
	var classes []string
	for _, s := range seats {
		classes = append(classes, s.cell.Params.Conditions.QoS)
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
			o.failed = fmt.Errorf("%s: its pod was lost: %w", o.cell.ID, err)
		}
	}
}

// collectTrials closes the accounts of seats.
func collectTrials(ctx context.Context, build int, seats []*seat) []result.Trial {
	trials := make([]result.Trial, len(seats))
	for i, s := range seats {
		trials[i] = s.trial(ctx, build)
	}
	audit(ctx, seats, trials)
	return trials
}
