package fleet

import (
	"errors"
	"fmt"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"netdelta/agent"
	"netdelta/result"
)

// Outcome is what fleets have measured.
type Outcome struct {
	Testbed  string        `json:"testbed"`
	Workload string        `json:"workload"`
	Params   result.Params `json:"params"`
	// Clients and Servers are how many were asked for in each network.
	Clients int `json:"clients"`
	Servers int `json:"servers"`
	// Burst is how long the clients fired each time.
	Burst    time.Duration `json:"burst_ns"`
	Seed     uint64        `json:"seed"`
	Started  time.Time     `json:"started"`
	Finished time.Time     `json:"finished"`
	// Networks are in the order asked for; the baseline's A/A control follows the baseline.
	Networks []Network `json:"networks"`
}

// Network is what one network's fleet has measured, over all builds.
type Network struct {
	Network string      `json:"network"`
	Role    result.Role `json:"role"`
	// Builds are those that could be set up.
	Builds []Build `json:"builds"`
	// Bursts are in the order in which they were fired.
	Bursts []Burst `json:"bursts"`
	// Transactions, Bytes, Sent and Lost are sums over all clients and bursts. Bytes are of payload; Sent and Lost are datagrams.
	Transactions int64 `json:"transactions"`
	Bytes        int64 `json:"bytes"`
	Sent         int64 `json:"sent,omitempty"`
	Lost         int64 `json:"lost,omitempty"`
	// Latency is of all transactions together; nil for workloads without latencies. Histogram is what it was read from.
	Latency   *Quantiles `json:"latency_ns,omitempty"`
	Histogram string     `json:"histogram,omitempty"`
	// Late is how long after the common instant clients began, by their own clocks, in nanoseconds; ClockError is how far the
	// clocks may have been off, in the worst of clients.
	Late       *Quantiles    `json:"late_ns,omitempty"`
	ClockError time.Duration `json:"clock_error_ns"`
	// Slowest and Fastest are the clients of any build that got the least and the most done in a second.
	Slowest *result.FleetClient `json:"slowest,omitempty"`
	Fastest *result.FleetClient `json:"fastest,omitempty"`
	// Failures are the clients that failed, and builds that could not be set up at all, as far as there is room for them; Failed
	// is how many there were.
	Failures []result.FleetFailure `json:"failures,omitempty"`
	Failed   int                   `json:"failed"`
}

// Quantiles describe a distribution.
type Quantiles struct {
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p99.9"`
	Max  float64 `json:"max"`
}

// Build is how one set-up of a network went.
type Build struct {
	Build int `json:"build"`
	// Pods is how long the pods took, Armed how long until all clients were connected, both from the beginning of the set-up.
	Pods  time.Duration `json:"pods_ns"`
	Armed time.Duration `json:"armed_ns"`
	// Clients is how many fired to the end.
	Clients int `json:"clients"`
	// Fairness is Jain's index of what these got done: 1 where all got the same, 1/n where one of n got everything. It is 0
	// where nothing was done.
	Fairness float64 `json:"fairness"`
}

// Burst is what the clients of one network measured together.
type Burst struct {
	Build   int `json:"build"`
	Round   int `json:"round"`
	Clients int `json:"clients"`
	// Rate is the sum of the clients' transactions per second, Throughput the sum of their payload in bits per second.
	Rate       float64 `json:"rate"`
	Throughput float64 `json:"throughput"`
	// P50 and P99 are of the latencies of all clients together, in nanoseconds.
	P50 float64 `json:"p50,omitempty"`
	P99 float64 `json:"p99,omitempty"`
}

// keptFailures is how many failures of a network are kept word for word.
const keptFailures = 50

// Of reads the outcome of a run from its record. It fails if a histogram can't be read.
func Of(run result.Run, trials []result.Trial) (Outcome, error) {
	o := Outcome{Testbed: run.Testbed, Seed: run.Seed, Started: run.Started, Finished: run.Finished}
	if s := run.Strategy; s != nil {
		o.Clients, o.Servers, o.Burst = s.Clients, s.Servers, s.Burst
	}
	for _, c := range run.Cells {
		o.Workload, o.Params = c.Workload, c.Params
		o.Params.Clients = 0 // they are the fleet's
		n := Network{Network: c.Network, Role: c.Role}
		all, late := result.NewHistogram(), result.NewHistogram()
		for _, t := range trials {
			if t.Cell != c.ID {
				continue
			}
			n.add(t)
			if t.Fleet == nil {
				continue
			}
			if err := errors.Join(result.AddHistogram(all, t.Histogram), result.AddHistogram(late, t.Fleet.Late)); err != nil {
				return o, fmt.Errorf("trial %s: %w", t.ID(), err)
			}
		}
		n.Late = quantiles(late)
		if n.Latency = quantiles(all); n.Latency != nil {
			var err error
			if n.Histogram, err = result.EncodeHistogram(all); err != nil {
				return o, err
			}
		}
		o.Networks = append(o.Networks, n)
	}
	return o, nil
}

// add takes in one build of the network.
func (n *Network) add(t result.Trial) {
	n.Transactions, n.Bytes, n.Sent, n.Lost = n.Transactions+t.Transactions, n.Bytes+t.Bytes, n.Sent+t.Sent, n.Lost+t.Lost
	if f := t.Fleet; f != nil {
		for _, failure := range f.Failures {
			n.fail(failure)
		}
		n.Failed += f.Failed - len(f.Failures)
		n.ClockError = max(n.ClockError, f.ClockError)
		if c := f.Slowest; c != nil && (n.Slowest == nil || c.Throughput < n.Slowest.Throughput) {
			n.Slowest = c
		}
		if c := f.Fastest; c != nil && (n.Fastest == nil || c.Throughput > n.Fastest.Throughput) {
			n.Fastest = c
		}
		for i, round := range t.Bursts.Round {
			v := Burst{Build: t.Build, Round: round, Clients: f.Fired[i], Rate: t.Bursts.Rate[i], Throughput: t.Bursts.Throughput[i]}
			if len(t.Bursts.P50) > 0 {
				v.P50, v.P99 = t.Bursts.P50[i], t.Bursts.P99[i]
			}
			n.Bursts = append(n.Bursts, v)
		}
		if t.Failed == "" {
			n.Builds = append(n.Builds, Build{Build: t.Build, Pods: f.Pods, Armed: f.Connected, Clients: f.Clients, Fairness: f.Fairness})
		}
	}
	if t.Failed != "" {
		n.fail(result.FleetFailure{Build: t.Build, Why: t.Failed})
	}
}

func (n *Network) fail(f result.FleetFailure) {
	n.Failed++
	if len(n.Failures) < keptFailures {
		n.Failures = append(n.Failures, f)
	}
}

// quantiles describe a histogram, nil an empty one.
func quantiles(h *hdrhistogram.Histogram) *Quantiles {
	if h.TotalCount() == 0 {
		return nil
	}
	at := func(q float64) float64 { return float64(h.ValueAtQuantile(q)) }
	return &Quantiles{P50: at(50), P90: at(90), P99: at(99), P999: at(99.9), Max: float64(h.Max())}
}

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
	run     time.Time     // when the run began
	clients int           // that were asked for
	start   time.Duration // of the burst under way, since the run began
	counted counts        // in the burst under way
	lead    time.Duration // how long before the common instant the clients are told; it grows with what it was found to take
}

// counts are sums over clients.
type counts struct{ transactions, bytes, sent, lost int64 }

func newTally(run time.Time, build, clients int, lead time.Duration) *tally {
	return &tally{
		trial: result.Trial{Build: build, Started: time.Now()}, run: run, clients: clients, lead: lead,
		all: result.NewHistogram(), burst: result.NewHistogram(), late: result.NewHistogram(), began: result.NewHistogram(),
	}
}

// begin opens a burst. One that was not ended is forgotten.
func (s *tally) begin(round int) {
	s.burst.Reset()
	s.began.Reset()
	s.current, s.counted, s.start = Burst{Round: round}, counts{}, time.Since(s.run)
}

// add takes in what one client measured. After an error nothing of it counts.
func (s *tally) add(c *client, got agent.SyncResult) error {
	b := got.Burst
	if b.Duration <= 0 || b.Transactions == 0 && b.Bytes == 0 {
		return errNothing
	}
	if err := result.AddHistogram(s.burst, got.Totals.Histogram); err != nil {
		return err
	}
	seconds := b.Duration.Seconds()
	rate, throughput := float64(b.Transactions)/seconds, float64(b.Bytes)*8/seconds
	s.current.Clients++
	s.current.Rate += rate
	s.current.Throughput += throughput
	c.last = work{seconds, float64(b.Transactions), float64(b.Bytes) * 8}
	k := &s.counted
	k.transactions, k.bytes, k.sent, k.lost = k.transactions+b.Transactions, k.bytes+b.Bytes, k.sent+b.Sent, k.lost+b.Lost
	s.fleet.ClockError = max(s.fleet.ClockError, c.Offset.Error)
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
	b.Disturbed = append(b.Disturbed, s.missing())
	s.fleet.Fired = append(s.fleet.Fired, v.Clients)
}

// complete is the share of clients that a burst needs to be compared: with fewer there is less load, which is another question.
const complete = 0.95

// missing is why the burst under way can't be compared, "" if it can.
func (s *tally) missing() string {
	if float64(s.current.Clients) < complete*float64(s.clients) {
		return result.ClientsMissing
	}
	return ""
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
