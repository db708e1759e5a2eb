package engine

import (
	"time"

	"netdelta/internal/latency"
	"netdelta/result"
)

// tally sums up the bursts that count. The last burst waits in it until the controller has said whether it counts.
type tally struct {
	started   time.Time // of the first burst: the trial's
	sums      counters
	histogram *latency.Histogram
	series    []result.Second

	waiting    bool
	last       counters
	lastSeries []result.Second
	batch      latency.Batch

	retransmits uint64 // at the last collect
	dropped     uint64
}

// take describes the burst that has just ended, and keeps it until it is settled.
func (t *tally) take(c *control, begin time.Time) Burst {
	o := &c.outcome
	if t.started.IsZero() {
		t.started = begin
	}
	b := Burst{
		Start:        begin,
		Duration:     time.Duration(c.clock.Nanoseconds(o.end - o.start)),
		Transactions: o.counters.transactions,
		Bytes:        o.counters.bytes,
		Sent:         o.counters.sent,
		Lost:         o.counters.lost,
		Reordered:    o.counters.reordered,
		Errors:       o.counters.errors,
		Switches:     o.switches,
		CPU:          time.Duration(o.cpu),
		Span:         time.Duration(c.clock.Nanoseconds(o.span)),
	}
	b.Work, b.Moved = c.work()
	if b.Duration > 0 {
		b.Throughput = float64(b.Bytes) * 8 / b.Duration.Seconds()
	}
	if c.kind.latencies() {
		s := t.batch.Take(&c.latency)
		b.Min, b.P50, b.P90, b.P99, b.Mean, b.Max, b.Split = s.Min, s.P50, s.P90, s.P99, s.Mean, s.Max, s.Split
		if t.histogram == nil {
			t.histogram = latency.NewHistogram()
		}
	}
	t.waiting, t.last = true, o.counters
	t.lastSeries = seconds(c, begin.Sub(t.started).Seconds(), t.lastSeries[:0])
	return b
}

// work is what the processor time of the last burst was spent on: its transactions and the bytes of their payload, those of
// the warm-up too. Of a TCP stream it is what the receiver has acknowledged, the messages that end the burst included; of a
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
func seconds(c *control, at float64, into []result.Second) []result.Second {
	o := &c.outcome
	measured := time.Duration(c.clock.Nanoseconds(o.end - o.start)).Seconds()
	if c.kind == DatagramOut {
		// What has come its receiver says at the end, of the burst as a whole.
		return append(into, result.Second{
			At: at, Span: measured, Transactions: o.counters.transactions, Bytes: o.counters.bytes, Lost: o.counters.lost,
		})
	}
	var before second
	add := func(i int64, span float64, s second) {
		into = append(into, result.Second{
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
	return into
}

// settle adds the last burst to the sums, or drops it.
func (t *tally) settle(drop bool) {
	if !t.waiting {
		return
	}
	t.waiting = false
	if drop {
		return
	}
	t.sums.transactions += t.last.transactions
	t.sums.bytes += t.last.bytes
	t.sums.sent += t.last.sent
	t.sums.lost += t.last.lost
	t.sums.reordered += t.last.reordered
	t.sums.errors += t.last.errors
	if t.histogram != nil {
		t.histogram.Add(&t.batch)
	}
	for _, s := range t.lastSeries {
		t.addSecond(s)
	}
}

// addSecond adds to the point of the series that lies in the same second, since a second may hold many bursts.
func (t *tally) addSecond(s result.Second) {
	s.At = float64(int64(s.At))
	if n := len(t.series); n > 0 && t.series[n-1].At == s.At {
		p := &t.series[n-1]
		p.Span += s.Span
		p.Transactions += s.Transactions
		p.Bytes += s.Bytes
		p.Lost += s.Lost
		return
	}
	t.series = append(t.series, s)
}

// forget drops everything, as if there had been no burst.
func (t *tally) forget() {
	t.waiting, t.started, t.sums, t.series = false, time.Time{}, counters{}, nil
	if t.histogram != nil {
		t.histogram.Reset()
	}
}

// collect returns the totals of the bursts that count, and starts anew.
func (t *tally) collect(dropLast bool) (Totals, error) {
	t.settle(dropLast)
	totals := Totals{
		Transactions: t.sums.transactions,
		Bytes:        t.sums.bytes,
		Sent:         t.sums.sent,
		Lost:         t.sums.lost,
		Reordered:    t.sums.reordered,
		Errors:       t.sums.errors,
		Series:       t.series,
	}
	if t.histogram != nil {
		var err error
		if totals.Histogram, err = t.histogram.Encode(); err != nil {
			return totals, err
		}
	}
	t.forget()
	return totals, nil
}

// sockets is what the kernel says of the client's sockets, and in tcp of its connections, since the last time.
func (t *tally) sockets(fds []int, datagrams bool) (sockets *result.Sockets, tcp *result.TCPInfo, err error) {
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
