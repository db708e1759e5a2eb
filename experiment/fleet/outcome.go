package fleet

import (
	"time"

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
	// Volley is how long the clients fired each time.
	Volley   time.Duration `json:"volley_ns"`
	Seed     uint64        `json:"seed"`
	Started  time.Time     `json:"started"`
	Finished time.Time     `json:"finished"`
	// Networks are in the order asked for; the baseline's twin follows the baseline.
	Networks []Network `json:"networks"`
}

// Network is what one network's fleet has measured, over all builds.
type Network struct {
	Network string      `json:"network"`
	Role    result.Role `json:"role"`
	// Builds are those that could be set up.
	Builds []Build `json:"builds"`
	// Volleys are in the order in which they were fired.
	Volleys []Volley `json:"volleys"`
	// Transactions, Bytes, Sent and Lost are sums over all clients and volleys. Bytes are of payload; Sent and Lost are datagrams.
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
	Slowest *Client `json:"slowest,omitempty"`
	Fastest *Client `json:"fastest,omitempty"`
	// Failures are the clients that failed, and builds that could not be set up at all, as far as there is room for them; Failed
	// is how many there were.
	Failures []Failure `json:"failures,omitempty"`
	Failed   int       `json:"failed"`
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

// Volley is what the clients of one network measured together.
type Volley struct {
	Build   int `json:"build"`
	Round   int `json:"round"`
	Clients int `json:"clients"`
	// Rate is the sum of the clients' transactions per second, Throughput that of their payload in bits per second.
	Rate       float64 `json:"rate"`
	Throughput float64 `json:"throughput"`
	// P50 and P99 are of the latencies of all clients together, in nanoseconds.
	P50 float64 `json:"p50,omitempty"`
	P99 float64 `json:"p99,omitempty"`
}

// Client is what one client got done in a second.
type Client struct {
	Pod        string  `json:"pod"`
	Node       string  `json:"node"`
	Build      int     `json:"build"`
	Rate       float64 `json:"rate"`
	Throughput float64 `json:"throughput"`
}

// Failure is a client or a pod that was lost.
type Failure struct {
	Build int    `json:"build"`
	Pod   string `json:"pod,omitempty"`
	Node  string `json:"node,omitempty"`
	Why   string `json:"why"`
}

// keptFailures is how many failures of a network are kept word for word.
const keptFailures = 50
