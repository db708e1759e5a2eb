package engine

import (
	"fmt"
	"time"

	"netdelta/internal/latency"
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

// Tally sums up the bursts that count. The last burst waits in it until the controller has said whether it counts. It is for one
// goroutine at a time.
type Tally struct {
	// Opened is what the seconds of the series count from; zero is the start of the first burst since the last Collect.
	Opened time.Time
	// Joins makes one point of the series of all that lie in the same second, where a second holds many bursts.
	Joins bool

	started   time.Time // of the first burst
	totals    Totals
	histogram *latency.Histogram

	waiting bool
	last    Burst
	more    More
	series  []result.Second // of the last burst
}

// More is what a burst has in addition to its figures. Each part may be left out.
type More struct {
	// Latencies records the latencies of its transactions.
	Latencies func(*latency.Histogram)
	// Series are its seconds, of which the first begins at the given one of the trial; without it the burst is one point.
	Series func(at float64) []result.Second
	// Add adds to the totals what is no sum of a burst's figures.
	Add func(*Totals)
}

// Take keeps a burst that has just ended.
func (t *Tally) Take(b Burst, more More) {
	if t.started.IsZero() {
		t.started = b.Start
	}
	origin := t.Opened
	if origin.IsZero() {
		origin = t.started
	}
	t.waiting, t.last, t.more = true, b, more
	at := b.Start.Sub(origin).Seconds()
	if more.Series != nil {
		t.series = more.Series(at)
	} else {
		t.series = []result.Second{{At: at, Span: b.Duration.Seconds(), Transactions: b.Transactions, Bytes: b.Bytes, Lost: b.Lost}}
	}
}

// Settle adds the last burst to the sums, or drops it.
func (t *Tally) Settle(drop bool) {
	waiting := t.waiting
	t.waiting = false
	if !waiting || drop {
		return
	}
	b, sum := t.last, &t.totals
	sum.Transactions, sum.Bytes, sum.Errors = sum.Transactions+b.Transactions, sum.Bytes+b.Bytes, sum.Errors+b.Errors
	sum.Sent, sum.Lost, sum.Reordered = sum.Sent+b.Sent, sum.Lost+b.Lost, sum.Reordered+b.Reordered
	if t.more.Latencies != nil {
		if t.histogram == nil {
			t.histogram = latency.NewHistogram()
		}
		t.more.Latencies(t.histogram)
	}
	for _, s := range t.series {
		t.addSecond(s)
	}
	if t.more.Add != nil {
		t.more.Add(sum)
	}
}

func (t *Tally) addSecond(s result.Second) {
	if t.Joins {
		s.At = float64(int64(s.At))
		if n := len(t.totals.Series); n > 0 && t.totals.Series[n-1].At == s.At {
			p := &t.totals.Series[n-1]
			p.Span, p.Transactions, p.Bytes, p.Lost = p.Span+s.Span, p.Transactions+s.Transactions, p.Bytes+s.Bytes, p.Lost+s.Lost
			return
		}
	}
	t.totals.Series = append(t.totals.Series, s)
}

// forget drops everything, as if there had been no burst.
func (t *Tally) forget() {
	*t = Tally{Opened: t.Opened, Joins: t.Joins, histogram: t.histogram}
	if t.histogram != nil {
		t.histogram.Reset()
	}
}

// Collect returns the totals of the bursts that count, and starts anew; dropLast is as in Settle.
func (t *Tally) Collect(dropLast bool) (Totals, error) {
	t.Settle(dropLast)
	totals := t.totals
	if t.histogram != nil {
		var err error
		if totals.Histogram, err = t.histogram.Encode(); err != nil {
			return Totals{}, err
		}
	}
	t.forget()
	return totals, nil
}

// describe is the burst that has just ended.
func (cl *client) describe(begin time.Time) Burst {
	c := cl.ctl
	o := &c.outcome
	n := o.counters
	b := Burst{
		Start: begin, Duration: time.Duration(c.clock.Nanoseconds(o.end - o.start)), Span: time.Duration(c.clock.Nanoseconds(o.span)),
		Transactions: n.transactions, Bytes: n.bytes, Sent: n.sent, Lost: n.lost, Reordered: n.reordered, Errors: n.errors,
		Switches: o.switches, CPU: time.Duration(o.cpu),
	}
	b.Work, b.Moved = c.work()
	if b.Duration > 0 {
		b.Throughput = float64(b.Bytes) * 8 / b.Duration.Seconds()
	}
	if c.kind.latencies() {
		s := cl.batch.Take(&c.latency)
		b.Min, b.P50, b.P90, b.P99, b.Mean, b.Max, b.Split = s.Min, s.P50, s.P90, s.P99, s.Mean, s.Max, s.Split
	}
	return b
}

// latencies records the last burst's latencies; nil where there are none.
func (cl *client) latencies() func(*latency.Histogram) {
	if !cl.cfg.Kind.latencies() {
		return nil
	}
	return func(h *latency.Histogram) { h.Add(&cl.batch) }
}

// work is what the processor time of the last burst was spent on: its transactions and the bytes of their payload, also
// of the warm-up. Of a TCP stream it is what the receiver has acknowledged, the messages that end the burst included; of a
// UDP stream what was sent, since what is lost on the way has cost its sender no less. Of HTTP it is all of its bytes, heads and
// what failed among them.
func (c *control) work() (transactions, bytes int64) {
	o := &c.outcome
	sum := o.unmeasured
	sum.add(o.counters)
	message := int64(c.message)
	switch c.kind {
	case StreamOut:
		return o.moved / message, o.moved
	case DatagramOut:
		return sum.sent, sum.sent * message
	case HTTPGet:
		return sum.transactions, o.moved
	}
	return sum.transactions, sum.bytes
}

// seconds cuts a burst that begins at the given second of the trial into its seconds.
func seconds(c *control, at float64) (all []result.Second) {
	o := &c.outcome
	measured := time.Duration(c.clock.Nanoseconds(o.end - o.start)).Seconds()
	if c.kind == DatagramOut {
		// Its receiver reports at the end what has come, of the burst as a whole.
		return []result.Second{{
			At: at, Span: measured, Transactions: o.counters.transactions, Bytes: o.counters.bytes, Lost: o.counters.lost,
		}}
	}
	var before second
	add := func(i int64, span float64, s second) {
		all = append(all, result.Second{
			At:           at + float64(i),
			Span:         span,
			Transactions: s.transactions - before.transactions,
			Bytes:        s.bytes - before.bytes,
			Lost:         s.lost - before.lost,
		})
		before = s
	}
	whole := min(o.secondCount, maxSeconds)
	for i := range whole {
		add(i, 1, c.seconds[i])
	}
	rest := second{o.counters.transactions, o.counters.bytes, o.counters.lost}
	if rest != before || whole == 0 {
		add(whole, max(measured-float64(whole), 0), rest)
	}
	return all
}

// socketCounts are what the kernel has counted at a client's sockets.
type socketCounts struct{ retransmits, segments, dropped uint64 }

// read is what the kernel says of the client's sockets, and in tcp of its connections, since the last time.
func (t *socketCounts) read(fds []int, datagrams bool) (sockets *result.Sockets, tcp *result.TCPInfo, err error) {
	sockets = &result.Sockets{}
	if sockets.SendBuffer, sockets.ReceiveBuffer, err = buffersOf(fds[0]); err != nil {
		return nil, nil, err
	}
	if !datagrams {
		if tcp, err = tcpInfo(fds); err != nil {
			return nil, nil, err
		}
		all := tcp.Retransmits
		tcp.Retransmits -= min(t.retransmits, all)
		t.retransmits = all
		all = tcp.Segments
		tcp.Segments -= min(t.segments, all)
		t.segments = all
		return sockets, tcp, nil
	}
	var all uint64
	for _, fd := range fds {
		all += dropsOf(fd)
	}
	sockets.Dropped = all - min(t.dropped, all)
	t.dropped = all
	return sockets, nil, nil
}
