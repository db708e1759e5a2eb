package workload

import (
	"time"

	"netdelta/engine"
	"netdelta/internal/latency"
	"netdelta/result"
)

// Tally sums up the bursts that count, for clients that have a program of others carry out each. The last burst waits in it until
// the controller has said whether it counts. The zero value is empty; it is for one goroutine at a time.
type Tally struct {
	// Opened is what the seconds of the series count from; zero is the start of the first burst since the last Collect.
	Opened time.Time

	started   time.Time // of the first burst
	totals    engine.Totals
	histogram *latency.Histogram
	last      *waiting
}

// waiting is a burst of which nobody has said yet whether it counts.
type waiting struct {
	burst engine.Burst
	more  More
}

// More is what a burst has beside its figures. Each part may be left out.
type More struct {
	// Latencies records those of its transactions.
	Latencies func(*latency.Histogram)
	// Series are its seconds, of which the first begins at the given one of the trial; without it the burst is one point.
	Series func(at float64) []result.Second
	// Add adds to the totals what is no sum of a burst's figures.
	Add func(*engine.Totals)
}

// Take keeps a burst that has just ended.
func (t *Tally) Take(b engine.Burst, more More) {
	if t.started.IsZero() {
		t.started = b.Start
	}
	t.last = &waiting{b, more}
}

// Settle adds the last burst to the sums, or drops it.
func (t *Tally) Settle(drop bool) {
	last := t.last
	t.last = nil
	if last == nil || drop {
		return
	}
	b, sum := last.burst, &t.totals
	sum.Transactions, sum.Bytes, sum.Errors = sum.Transactions+b.Transactions, sum.Bytes+b.Bytes, sum.Errors+b.Errors
	sum.Sent, sum.Lost, sum.Reordered = sum.Sent+b.Sent, sum.Lost+b.Lost, sum.Reordered+b.Reordered
	if last.more.Latencies != nil {
		if t.histogram == nil {
			t.histogram = latency.NewHistogram()
		}
		last.more.Latencies(t.histogram)
	}
	t.plot(last)
	if last.more.Add != nil {
		last.more.Add(sum)
	}
}

// plot adds a burst to the series.
func (t *Tally) plot(w *waiting) {
	origin := t.Opened
	if origin.IsZero() {
		origin = t.started
	}
	b, at := w.burst, w.burst.Start.Sub(origin).Seconds()
	if w.more.Series != nil {
		t.totals.Series = append(t.totals.Series, w.more.Series(at)...)
		return
	}
	t.totals.Series = append(t.totals.Series, result.Second{
		At: at, Span: b.Duration.Seconds(), Transactions: b.Transactions, Bytes: b.Bytes, Lost: b.Lost,
	})
}

// Collect returns the totals of the bursts that count, and starts anew; dropLast is as in Settle.
func (t *Tally) Collect(dropLast bool) (engine.Totals, error) {
	t.Settle(dropLast)
	totals := t.totals
	if t.histogram != nil {
		var err error
		if totals.Histogram, err = t.histogram.Encode(); err != nil {
			return engine.Totals{}, err
		}
	}
	*t = Tally{Opened: t.Opened}
	return totals, nil
}
