package fleet

import (
	"fmt"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"netdelta/agent"
	"netdelta/result"
)

// sum is what is kept of a network: the same, however many clients there are and however often they fire, but for a line of each
// volley.
type sum struct {
	network Network
	all     *hdrhistogram.Histogram // latencies
	volley  *hdrhistogram.Histogram // those of the volley under way
	late    *hdrhistogram.Histogram // of all that count
	began   *hdrhistogram.Histogram // how late clients began the volley under way
	current Volley
	counted counts        // in the volley under way
	lead    time.Duration // how long before the common instant the clients are told; it grows with what it was found to take
}

// counts are sums over clients.
type counts struct{ transactions, bytes, sent, lost int64 }

func newSum(network string, role result.Role) *sum {
	return &sum{
		network: Network{Network: network, Role: role},
		all:     result.NewHistogram(), volley: result.NewHistogram(), late: result.NewHistogram(), began: result.NewHistogram(),
	}
}

// begin opens a volley. One that was not ended is forgotten.
func (s *sum) begin(build, round int) {
	s.volley.Reset()
	s.began.Reset()
	s.current, s.counted = Volley{Build: build, Round: round}, counts{}
}

// add takes in what one client measured. After an error nothing of it counts.
func (s *sum) add(c *client, shot agent.Shot) error {
	b := shot.Burst
	if b.Duration <= 0 || b.Transactions == 0 && b.Bytes == 0 {
		return errNothing
	}
	if shot.Totals.Histogram != "" {
		h, err := result.DecodeHistogram(shot.Totals.Histogram)
		if err != nil {
			return err
		}
		if dropped := s.volley.Merge(h); dropped > 0 {
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
	s.network.ClockError = max(s.network.ClockError, c.offset.Error)
	return s.began.RecordValue(min(max(shot.Late.Nanoseconds(), 1), time.Minute.Nanoseconds()))
}

// end takes the volley in. One in which no client got anything done leaves no line.
func (s *sum) end(clients []*client) {
	for _, c := range clients {
		c.did.seconds, c.did.transactions, c.did.bits = c.did.seconds+c.last.seconds, c.did.transactions+c.last.transactions, c.did.bits+c.last.bits
		c.last = work{}
	}
	s.late.Merge(s.began)
	if s.current.Clients == 0 {
		return
	}
	if s.volley.TotalCount() > 0 {
		s.current.P50, s.current.P99 = float64(s.volley.ValueAtQuantile(50)), float64(s.volley.ValueAtQuantile(99))
		s.all.Merge(s.volley)
	}
	n, k := &s.network, s.counted
	n.Transactions, n.Bytes, n.Sent, n.Lost = n.Transactions+k.transactions, n.Bytes+k.bytes, n.Sent+k.sent, n.Lost+k.lost
	n.Volleys = append(n.Volleys, s.current)
}

// fail notes a client, or a pod, that was lost.
func (s *sum) fail(f Failure) {
	s.network.Failed++
	if len(s.network.Failures) < keptFailures {
		s.network.Failures = append(s.network.Failures, f)
	}
}

// settle takes in what the clients of a build got done, those that were there to the end.
func (s *sum) settle(b Build, clients []*client) {
	var shares []float64
	for _, c := range clients {
		if c.lost || c.did.seconds == 0 {
			continue
		}
		did := Client{Pod: c.pod.Name(), Node: c.pod.Node(), Build: b.Build, Rate: c.did.transactions / c.did.seconds, Throughput: c.did.bits / c.did.seconds}
		shares = append(shares, did.Throughput)
		n := &s.network
		if n.Slowest == nil || did.Throughput < n.Slowest.Throughput {
			n.Slowest = &did
		}
		if n.Fastest == nil || did.Throughput > n.Fastest.Throughput {
			n.Fastest = &did
		}
	}
	b.Clients, b.Fairness = len(shares), Jain(shares)
	s.network.Builds = append(s.network.Builds, b)
}

// closed is all that the network has to say.
func (s *sum) closed() (Network, error) {
	n := s.network
	n.Late = quantiles(s.late)
	if n.Latency = quantiles(s.all); n.Latency != nil {
		var err error
		if n.Histogram, err = result.EncodeHistogram(s.all); err != nil {
			return n, err
		}
	}
	return n, nil
}

// quantiles describe a histogram, nil an empty one.
func quantiles(h *hdrhistogram.Histogram) *Quantiles {
	if h.TotalCount() == 0 {
		return nil
	}
	at := func(q float64) float64 { return float64(h.ValueAtQuantile(q)) }
	return &Quantiles{P50: at(50), P90: at(90), P99: at(99), P999: at(99.9), Max: float64(h.Max())}
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
