package engine

import (
	"errors"
	"hash/fnv"
	"math"
	"os"
	"time"

	"netdelta/engine/mlrsearch"
	"netdelta/result"
	"netdelta/unit"
)

const (
	// RateMost is the highest rate of a stream. A search's first trial asks for it, to learn what is possible.
	RateMost = 400 * unit.Gbit
	// loadShare is the part of a burst for each of the three loads at which latency is measured: one in so many. The rest is
	// for the search.
	loadShare = 12
	// behind is how far the end of a trial may lie behind its beginning, as a share of the trial: a quarter of the width
	// that rates are found to. behindLeast is what the clocks and the scheduler of a quiet machine make of nothing.
	behind      = mlrsearch.Width / 4
	behindLeast = 20 * time.Microsecond
	// apart is how far apart, relative to the upper one, bounds may be for a result when the time ends before they are close
	// enough: where everything is disturbed they are what chance made them.
	apart = 5 * mlrsearch.Width
	// trialLeast is how many datagrams the shortest trial has at the lowest rate: one whose way the last one's is compared to.
	trialLeast = 2
	// reportTimeout is how long the receiver's report on a trial is waited for until it is asked for again.
	reportTimeout = 2 * time.Millisecond
)

// searches says whether a burst is a search. One that is too short for it, or that has a number of datagrams, sends as fast
// as it can instead: it warms the path.
func (c *client) searches(spec BurstSpec) bool {
	return c.cfg.Params.Search && spec.Transactions == 0 && spec.Duration >= SearchLeast
}

// seeker is a search in its burst.
type seeker struct {
	client *client
	within time.Duration // the burst's deadline,
	until  time.Time     // and when that is
	burst  Burst
	series []result.Second
	// least is what the quickest datagram took from when it was due, in nanoseconds of two clocks that may be apart.
	least int64
	// sameClock says that the receiver has told what datagrams took.
	sameClock bool
}

// search looks for the highest rates, and measures latency below them.
func (c *client) search(spec BurstSpec) (Burst, error) {
	within := deadline(spec)
	s := &seeker{client: c, within: within, until: time.Now().Add(within), least: math.MaxInt64}
	b, err := s.run(spec)
	if err != nil {
		return Burst{}, err
	}
	c.tally.Take(b, More{Series: func(float64) []result.Second { return s.series }})
	return b, nil
}

func (s *seeker) run(spec BurstSpec) (Burst, error) {
	bits := 8 * float64(s.client.cfg.Params.Message)
	share := spec.Duration / loadShare
	config := mlrsearch.Standard(spec.Duration-3*share, 0, float64(RateMost)/bits, behind)
	goal := config.Goals[0]
	config.Least = min(trialLeast/goal.Initial.Seconds(), config.Most)
	if spec.Warmup > 0 {
		if _, err := s.trial(config.Most, min(spec.Warmup, goal.Final)); err != nil {
			return Burst{}, err
		}
		// Of the warm-up only the effort counts.
		s.burst = Burst{CPU: s.burst.CPU, Work: s.burst.Work, Moved: s.burst.Moved}
		s.series = nil
	}
	start := time.Now()
	found, err := mlrsearch.Search(config, s.trial)
	if err != nil {
		return Burst{}, err
	}
	none, little := found.Found[0], found.Found[1]
	b := &s.burst
	b.Start = start
	b.Search = &Search{
		NoDrop: known(none) * bits, PartialDrop: known(little) * bits, Trials: found.Trials, AtLeast: none.AtLeast,
	}
	for _, load := range []struct {
		part float64
		to   *float64
	}{{0.1, &b.Search.Load10}, {0.5, &b.Search.Load50}, {0.9, &b.Search.Load90}} {
		if err := s.latencyAt(load.part*known(none), share, load.to); err != nil {
			return Burst{}, err
		}
	}
	b.Duration = time.Since(start)
	b.Throughput = float64(b.Bytes) * 8 / b.Duration.Seconds()
	return *b, nil
}

// known is the rate that was found; 0 where the search ended before it knew one.
func known(f mlrsearch.Found) float64 {
	if f.Narrow || f.Upper > 0 && f.Lower >= f.Upper*(1-apart) {
		return f.Lower
	}
	return 0
}

// latencyAt measures the median latency at a rate, if there is one and both ends have the same clock.
func (s *seeker) latencyAt(rate float64, span time.Duration, to *float64) error {
	if rate <= 0 || !s.sameClock {
		return nil
	}
	if _, err := s.trial(rate, span); err != nil {
		return err
	}
	*to = float64(s.client.ctl.probed.median)
	return nil
}

// trial runs one trial at a rate in datagrams per second. Its queues are empty when it returns: the receiver's report comes
// after all that was sent.
func (s *seeker) trial(rate float64, span time.Duration) (mlrsearch.Outcome, error) {
	c := s.client
	began := time.Now()
	o := &c.ctl.order
	o.number++
	o.warmup, o.transactions, o.duration, o.probing = 0, 0, c.ctl.clock.Span(span), true
	o.pace(rate)
	begin, err := c.carryOut(max(time.Until(s.until), time.Millisecond))
	if hung, is := errors.AsType[*hangError](err); is {
		hung.after = s.within // not what was left of it
	}
	if err != nil {
		return mlrsearch.Outcome{}, err
	}
	s.add(c.describe(begin))
	s.sameClock = s.sameClock || c.ctl.probed.median > 0
	return s.judge(time.Since(began)), nil
}

// add puts a trial to the burst's account.
func (s *seeker) add(t Burst) {
	b := &s.burst
	b.Transactions += t.Transactions
	b.Bytes += t.Bytes
	b.Sent += t.Sent
	b.Lost += t.Lost
	b.Reordered += t.Reordered
	b.Switches += t.Switches
	b.CPU += t.CPU
	b.Work += t.Work
	b.Moved += t.Moved
	tally := &s.client.tally
	if tally.started.IsZero() {
		tally.started = t.Start
	}
	s.series = append(s.series, seconds(s.client.ctl, t.Start.Sub(tally.started).Seconds())...)
}

// judge says what a search is told of the trial that has just ended.
//
// Buffers hide a rate that is too high from a short trial: nothing is lost while they fill. What gives it away is a queue
// that does not go away: at a rate r above the capacity C, the datagrams of a trial's end take the longer, by r/C-1 of the
// time since its beginning (M. Jain, C. Dovrolis: End-to-end available bandwidth, SIGCOMM 2002), and once the buffers are
// full, 1-C/r of what is sent is lost. That share counts as lost here already. A moment's delay is no queue: the quickest
// datagram of the last eighth tells, against the quickest of the whole search.
//
// In the same way a sender that was never on time in the last eighth could not keep its schedule.
func (s *seeker) judge(elapsed time.Duration) mlrsearch.Outcome {
	c := s.client.ctl
	counted, probed := c.outcome.counters, c.probed
	span := float64(c.order.duration)
	// When the last eighth began.
	passed := span * (tailShare - 1) / tailShare
	allowed := max(behind*span, float64(behindLeast)) / passed
	o := mlrsearch.Outcome{Due: max(c.order.duration<<16/c.order.gap, 1), Sent: counted.sent, Elapsed: elapsed}
	if late := float64(probed.late) / passed; late <= allowed {
		o.Sent = o.Due // what is missing fell into a moment at the very end
	} else {
		o.Sent = min(o.Sent, int64(float64(o.Due)*max(1-late, 0)))
	}
	if counted.transactions == 0 {
		o.Loss = 1
		return o
	}
	o.Loss = float64(counted.lost) / float64(counted.sent)
	s.least = min(s.least, probed.least)
	// No datagram of the end arrived: then enough were lost.
	if queue := probed.tail - s.least - probed.late; probed.tail != math.MaxInt64 && float64(queue)/passed > allowed {
		growth := float64(queue)/passed - allowed
		o.Loss += (1 - o.Loss) * growth / (1 + growth)
	}
	if probed.span > 0 {
		o.Rate = float64(counted.transactions-1) / time.Duration(probed.span).Seconds()
	}
	return o
}

// clockDomain names the clock that this process reads times from: processes of one boot of a kernel, in one time namespace,
// have the same. It is 0 where that can't be told.
func clockDomain() uint32 {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return 0
	}
	// Kernels before 5.6 have no time namespaces.
	namespace, err := os.Readlink("/proc/self/ns/time")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return 0
	}
	h := fnv.New32a()
	_, _ = h.Write(append(boot, namespace...)) // it can't fail
	return h.Sum32()
}
