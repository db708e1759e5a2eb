package fleet

import (
	"errors"
	"fmt"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

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
	Burst    time.Duration `json:"volley_ns"`
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
	Bursts []Burst `json:"volleys"`
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
			if err := errors.Join(mergeInto(all, t.Histogram), mergeInto(late, t.Fleet.Late)); err != nil {
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

// mergeInto adds an encoded histogram to another; "" is empty.
func mergeInto(h *hdrhistogram.Histogram, text string) error {
	if text == "" {
		return nil
	}
	other, err := result.DecodeHistogram(text)
	if err == nil {
		other.MergeInto(h)
	}
	return err
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
