package block

import (
	"fmt"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"netdelta/result"
	"netdelta/workload"
	"netdelta/workload/tool/fio"
)

// tally sums up the bursts that count. The last one waits in it until the controller has said whether it counts.
type tally struct {
	started   time.Time // of the first burst
	sums      workload.Totals
	histogram *hdrhistogram.Histogram

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
func (t *tally) settle(drop bool) error {
	if !t.waiting {
		return nil
	}
	t.waiting = false
	if drop {
		return nil
	}
	b := t.last
	t.sums.Transactions += b.Transactions
	t.sums.Bytes += b.Bytes
	t.sums.Errors += b.Errors
	t.sums.Series = append(t.sums.Series, result.Second{
		At: b.Start.Sub(t.started).Seconds(), Span: b.Duration.Seconds(), Transactions: b.Transactions, Bytes: b.Bytes,
	})
	if t.histogram == nil {
		t.histogram = newHistogram()
	}
	return t.latencies.Record(t.histogram)
}

// newHistogram is one of latencies from 1 ns to a minute with three digits, as those of the other workloads.
func newHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(1, int64(time.Minute), 3) }

// collect returns the totals of the bursts that count, and starts anew.
func (t *tally) collect(dropLast bool) (workload.Totals, error) {
	if err := t.settle(dropLast); err != nil {
		return workload.Totals{}, err
	}
	totals := t.sums
	if t.histogram != nil && t.histogram.TotalCount() > 0 {
		encoded, err := t.histogram.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
		if err != nil {
			return workload.Totals{}, fmt.Errorf("encode a histogram of %d latencies: %w", t.histogram.TotalCount(), err)
		}
		totals.Histogram = string(encoded)
	}
	*t = tally{}
	return totals, nil
}
