package block

import (
	"fmt"
	"time"

	"netdelta/internal/latency"
	"netdelta/result"
	"netdelta/workload"
	"netdelta/workload/tool/fio"
)

// tally sums up the bursts that count. The last one waits in it until the controller has said whether it counts.
type tally struct {
	started   time.Time // of the first burst
	sums      workload.Totals
	histogram *latency.Histogram

	waiting   bool
	last      workload.Burst
	latencies fio.Latency
}

// take keeps a burst that has just ended.
func (t *tally) take(b workload.Burst, latencies fio.Latency) {
	if t.started.IsZero() {
		t.started = b.Start
	}
	t.waiting, t.last, t.latencies = true, b, latencies
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
	b := t.last
	t.sums.Transactions += b.Transactions
	t.sums.Bytes += b.Bytes
	t.sums.Errors += b.Errors
	t.sums.Series = append(t.sums.Series, result.Second{
		At: b.Start.Sub(t.started).Seconds(), Span: b.Duration.Seconds(), Transactions: b.Transactions, Bytes: b.Bytes,
	})
	if t.histogram == nil {
		t.histogram = latency.NewHistogram()
	}
	t.latencies.Record(t.histogram)
}

// collect returns the totals of the bursts that count, and starts anew.
func (t *tally) collect(dropLast bool) (workload.Totals, error) {
	t.settle(dropLast)
	totals := t.sums
	if t.histogram != nil {
		var err error
		if totals.Histogram, err = t.histogram.Encode(); err != nil {
			return workload.Totals{}, fmt.Errorf("block: %w", err)
		}
	}
	*t = tally{}
	return totals, nil
}
