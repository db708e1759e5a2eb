package engine

import (
	"time"

	"netdelta/internal/latency"
	"netdelta/result"
)

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
