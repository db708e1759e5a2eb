package engine

import (
	"time"

	"netdelta/internal/latency"
	"netdelta/result"
)

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
