package engine

import (
	"fmt"
	"time"

	"netdelta/result"
)

// Server is the server's side of a workload, running until Close.
type Server interface {
	// Totals are what the server saw since it started.
	Totals() Totals
	Close() error
}

// Client is the client's side: armed, and waiting for bursts.
type Client interface {
	// Burst runs the workload once. The first part (warm-up) is discarded. It returns when the burst is over or its
	// deadline has passed; after an error the client is of no more use.
	Burst(spec BurstSpec) (Burst, error)
	// Collect returns the totals and histogram of the kept bursts since the last Collect, and starts anew; dropLast as
	// in BurstSpec.
	Collect(dropLast bool) (Totals, error)
	Close() error
}

// BurstSpec says how long a burst is: until Duration has passed or Transactions are done, whichever comes first (zero: unset).
type BurstSpec struct {
	Duration     time.Duration
	Transactions int64
	Warmup       time.Duration // at the start of the burst, before Duration, not measured
	// DropLast leaves the burst before this one out of Collect: the controller found it disturbed.
	DropLast bool
	// Deadline is when a burst that hangs is given up, counted from its start.
	Deadline time.Duration
}

// Check refuses bursts that have no end, or begin before themselves.
func (s BurstSpec) Check() error {
	if s.Duration < 0 || s.Transactions < 0 || s.Warmup < 0 || s.Deadline < 0 || s.Duration == 0 && s.Transactions == 0 {
		return fmt.Errorf("a burst of %v, %d transactions, warm-up %v and deadline %v: it takes a duration or a number of transactions, and nothing negative",
			s.Duration, s.Transactions, s.Warmup, s.Deadline)
	}
	return nil
}

// Burst is what one burst measured. Latencies are in nanoseconds. A transaction is a request with its response, or a message
// of a stream (of a datagram stream: one that was received).
type Burst struct {
	Start                         time.Time
	Duration                      time.Duration // of the measured part
	Span                          time.Duration // of the whole burst: with its warm-up, and until its end was known
	Transactions                  int64
	Bytes                         int64 // payload delivered: requests and responses, or what the receiver of a stream got
	Sent                          int64 // datagrams
	Lost                          int64
	Reordered                     int64
	Errors                        int64 // transactions that failed; they are not among Transactions
	Min, P50, P90, P99, Mean, Max float64
	Split                         float64 // log(p50 of odd transactions / p50 of even ones)
	Throughput                    float64 // bits per second, payload
	// Level, of a burst in sweeps, is the natural logarithm of a typical visit's median latency less the state of the machine (package
	// visits): what the machine does to all clients at the same time is not in it. Only differences of levels of the same sweeps count.
	Level float64
	// Carry is what the visits of a burst in sweeps left behind for the visits that followed them.
	Carry result.CarryOver
	// Switches is how often the measuring thread was preempted (involuntary context switches).
	Switches int64
	// CPU is the processor time that the client's measuring thread used for the burst and its warm-up; Work and Moved are
	// the transactions and the bytes of payload of both: requests and responses, what the receiver of a TCP stream got, what
	// the sender of a UDP stream sent (it costs the same if it is lost).
	CPU         time.Duration
	Work, Moved int64
	// Search is what a search found; nil for an ordinary burst.
	Search *Search
}

// SearchLeast is the shortest burst that holds a search for the highest rate. In a shorter one the longest trials, a part in
// 37 of it, would be no longer than what a thread waits for its processor now and then.
const SearchLeast = 250 * time.Millisecond

// Search is what a search for the highest rate found. Rates are bits of payload per second, latencies nanoseconds; what was
// not found is 0.
type Search struct {
	NoDrop, PartialDrop    float64
	Load10, Load50, Load90 float64 // median latency at that share of NoDrop, in percent
	Trials                 int     // that the search took
	// AtLeast says that it was the sender that could do no more than NoDrop: what lies behind it may carry more.
	AtLeast bool
}

// Totals are sums over bursts.
type Totals struct {
	Transactions, Bytes, Sent, Lost, Reordered int64
	// Histogram is HdrHistogram V2 compressed, base64; "" without latencies.
	Histogram string
	TCP       *result.TCPInfo
	Sockets   *result.Sockets
	Series    []result.Second
	// Errors are transactions that failed. Disk and Replication are what a server knows of what lies behind it; nil for others.
	Errors      int64
	Disk        *result.Disk
	Replication *result.Replication
}
