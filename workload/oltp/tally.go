package oltp

import (
	"math"
	"time"

	"netdelta/internal/latency"
	"netdelta/result"
	"netdelta/workload"
	"netdelta/workload/tool/sysbench"
)

// tally sums up the bursts that count. The last burst waits in it until the controller has said whether it counts.
type tally struct {
	started   time.Time // of the first burst: the trial's
	sums      workload.Totals
	histogram *latency.Histogram
	last      *taken
}

// taken is a burst that waits.
type taken struct {
	start       time.Time
	report      sysbench.Report
	replication *result.Replication
}

// take keeps a burst until it is settled.
func (t *tally) take(start time.Time, r sysbench.Report, replication *result.Replication) {
	if t.started.IsZero() {
		t.started = start
	}
	t.last = &taken{start, r, replication}
}

// settle adds the last burst to the sums, or drops it.
func (t *tally) settle(drop bool) {
	last := t.last
	t.last = nil
	if last == nil || drop {
		return
	}
	t.sums.Transactions += last.report.Transactions
	t.sums.Errors += last.report.Errors + last.report.Reconnects
	t.sums.Replication = merge(t.sums.Replication, last.replication)
	if t.histogram == nil {
		t.histogram = latency.NewHistogram()
	}
	last.report.Each(t.histogram.Record)
	t.sums.Series = append(t.sums.Series, series(last.report, last.start.Sub(t.started).Seconds())...)
}

// collect returns the totals of the bursts that count, and starts anew.
func (t *tally) collect(dropLast bool) (workload.Totals, error) {
	t.settle(dropLast)
	totals := t.sums
	if t.histogram != nil {
		var err error
		if totals.Histogram, err = t.histogram.Encode(); err != nil {
			return totals, err
		}
	}
	*t = tally{}
	return totals, nil
}

// series cuts a run that begins at the given second of the trial into its seconds. They hold as many transactions as the run:
// sysbench rounds its seconds, and does not report the last one.
func series(r sysbench.Report, at float64) []result.Second {
	var points []result.Second
	var before int64
	for i, s := range r.Seconds {
		upTo := min(before+int64(math.Round(s.TPS)), r.Transactions)
		if float64(i+1) >= r.Time.Seconds() {
			upTo = r.Transactions
		}
		points = append(points, result.Second{At: at + float64(i), Span: 1, Transactions: upTo - before})
		before = upTo
	}
	rest := r.Time.Seconds() - float64(len(r.Seconds))
	switch {
	case before == r.Transactions:
	case rest > 0.1 || len(points) == 0:
		points = append(points, result.Second{At: at + float64(len(points)), Span: max(rest, 0), Transactions: r.Transactions - before})
	default: // the last transactions end a little after the last second
		points[len(points)-1].Transactions += r.Transactions - before
	}
	return points
}
