package fleet

import (
	"errors"
	"fmt"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"netdelta/agent"
	"netdelta/result"
)

// tally is what is kept of a network in one build: the same, however many clients there are and however often they fire, but for a
// line of each burst.
type tally struct {
	trial   result.Trial
	fleet   result.FleetBuild
	all     *hdrhistogram.Histogram // latencies
	burst   *hdrhistogram.Histogram // latencies of the burst under way
	late    *hdrhistogram.Histogram // of all that count
	began   *hdrhistogram.Histogram // how late clients began the burst under way
	current Burst
	start   time.Duration // of the burst under way, since the build began
	counted counts        // in the burst under way
	lead    time.Duration // how long before the common instant the clients are told; it grows with what it was found to take
}

// counts are sums over clients.
type counts struct{ transactions, bytes, sent, lost int64 }

func newTally(build int, lead time.Duration) *tally {
	return &tally{
		trial: result.Trial{Build: build, Started: time.Now()}, lead: lead,
		all: result.NewHistogram(), burst: result.NewHistogram(), late: result.NewHistogram(), began: result.NewHistogram(),
	}
}

// begin opens a burst. One that was not ended is forgotten.
func (s *tally) begin(round int) {
	s.burst.Reset()
	s.began.Reset()
	s.current, s.counted, s.start = Burst{Round: round}, counts{}, time.Since(s.trial.Started)
}

// add takes in what one client measured. After an error nothing of it counts.
func (s *tally) add(c *client, got agent.SyncResult) error {
	b := got.Burst
	if b.Duration <= 0 || b.Transactions == 0 && b.Bytes == 0 {
		return errNothing
	}
	if got.Totals.Histogram != "" {
		h, err := result.DecodeHistogram(got.Totals.Histogram)
		if err != nil {
			return err
		}
		if dropped := h.MergeInto(s.burst); dropped > 0 {
			return fmt.Errorf("%d latencies lie outside 1 ns to 60 s", dropped)
		}
	}
	seconds := b.Duration.Seconds()
	rate, throughput := float64(b.Transactions)/seconds, float64(b.Bytes)*8/seconds
	s.current.Clients++
	s.current.Rate += rate
	s.current.Throughput += throughput
	c.last = work{seconds, float64(b.Transactions), float64(b.Bytes) * 8}
	k := &s.counted
	k.transactions, k.bytes, k.sent, k.lost = k.transactions+b.Transactions, k.bytes+b.Bytes, k.sent+b.Sent, k.lost+b.Lost
	s.fleet.ClockError = max(s.fleet.ClockError, c.offset.Error)
	return s.began.RecordValue(min(max(got.Late.Nanoseconds(), 1), time.Minute.Nanoseconds()))
}

// end takes the burst in. One in which no client got anything done leaves no line.
func (s *tally) end(clients []*client, length time.Duration) {
	for _, c := range clients {
		c.did.seconds, c.did.transactions, c.did.bits = c.did.seconds+c.last.seconds, c.did.transactions+c.last.transactions, c.did.bits+c.last.bits
		c.last = work{}
	}
	s.late.Merge(s.began)
	if s.current.Clients == 0 {
		return
	}
	t, k, v := &s.trial, s.counted, s.current
	b := &t.Bursts
	if s.burst.TotalCount() > 0 {
		b.P50, b.P99 = append(b.P50, float64(s.burst.ValueAtQuantile(50))), append(b.P99, float64(s.burst.ValueAtQuantile(99)))
		s.all.Merge(s.burst)
	}
	t.Transactions, t.Bytes, t.Sent, t.Lost = t.Transactions+k.transactions, t.Bytes+k.bytes, t.Sent+k.sent, t.Lost+k.lost
	b.Round, b.Start, b.Duration = append(b.Round, v.Round), append(b.Start, s.start.Nanoseconds()), append(b.Duration, length.Nanoseconds())
	b.Transactions, b.Rate, b.Throughput = append(b.Transactions, k.transactions), append(b.Rate, v.Rate), append(b.Throughput, v.Throughput)
	s.fleet.Fired = append(s.fleet.Fired, v.Clients)
}

// fail notes a client, or a pod, that was lost.
func (s *tally) fail(f result.FleetFailure) {
	s.fleet.Failed++
	if len(s.fleet.Failures) < keptFailures {
		f.Build = s.trial.Build
		s.fleet.Failures = append(s.fleet.Failures, f)
	}
}

// settle takes in what the clients got done, of those that were there to the end, and makes the build a trial.
func (s *tally) settle(clients []*client) (result.Trial, error) {
	var shares []float64
	for _, c := range clients {
		if c.lost || c.did.seconds == 0 {
			continue
		}
		did := result.FleetClient{Pod: c.pod.Name(), Node: c.pod.Node(), Build: s.trial.Build, Rate: c.did.transactions / c.did.seconds, Throughput: c.did.bits / c.did.seconds}
		shares = append(shares, did.Throughput)
		f := &s.fleet
		if f.Slowest == nil || did.Throughput < f.Slowest.Throughput {
			f.Slowest = &did
		}
		if f.Fastest == nil || did.Throughput > f.Fastest.Throughput {
			f.Fastest = &did
		}
	}
	s.fleet.Clients, s.fleet.Fairness = len(shares), Jain(shares)
	var errs [2]error
	if s.late.TotalCount() > 0 {
		s.fleet.Late, errs[0] = result.EncodeHistogram(s.late)
	}
	if s.all.TotalCount() > 0 {
		s.trial.Histogram, errs[1] = result.EncodeHistogram(s.all)
	}
	s.trial.Fleet = &s.fleet
	return s.trial, errors.Join(errs[:]...)
}

// Jain is Jain's index of fairness: 1 where all shares are the same, 1/n where one of n has everything, 0 where there is nothing.
// Shares must not be negative.
func Jain(shares []float64) float64 {
	total, squares := 0.0, 0.0
	for _, x := range shares {
		total += x
		squares += x * x
	}
	if squares == 0 {
		return 0
	}
	return total * total / (float64(len(shares)) * squares)
}
