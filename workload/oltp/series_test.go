package oltp

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"netdelta/engine"
	"netdelta/internal/property"
	"netdelta/result"
	"netdelta/workload/tool/sysbench"
)

// report is of a run with so many transactions in each second that was reported.
func report(length time.Duration, transactions int64, seconds ...float64) sysbench.Report {
	r := sysbench.Report{Time: length, Transactions: transactions, Buckets: []sysbench.Bucket{{Place: 500, Count: transactions}}}
	for i, tps := range seconds {
		r.Seconds = append(r.Seconds, sysbench.Second{At: i + 1, TPS: tps})
	}
	return r
}

func TestSeries(t *testing.T) {
	for name, c := range map[string]struct {
		report sysbench.Report
		want   []result.Second
	}{
		"the last second was not reported": {report(2010*time.Millisecond, 305, 101.2), []result.Second{
			{At: 5, Span: 1, Transactions: 101}, {At: 6, Span: 1.0099999999999998, Transactions: 204},
		}},
		"what ends after the last second": {report(2050*time.Millisecond, 305, 100, 200), []result.Second{
			{At: 5, Span: 1, Transactions: 100}, {At: 6, Span: 1, Transactions: 205},
		}},
		"a stall": {report(3*time.Second, 200, 100, 0, 100), []result.Second{
			{At: 5, Span: 1, Transactions: 100}, {At: 6, Span: 1}, {At: 7, Span: 1, Transactions: 100},
		}},
		"shorter than a second": {report(100*time.Millisecond, 10), []result.Second{{At: 5, Span: 0.1, Transactions: 10}}},
		"rounded too high":      {report(2*time.Second, 200, 100.6, 100.6), []result.Second{{At: 5, Span: 1, Transactions: 101}, {At: 6, Span: 1, Transactions: 99}}},
	} {
		if got := series(c.report, 5); !slices.Equal(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
	property.Check(t, func(t *rapid.T) {
		r := report(time.Duration(rapid.Int64Range(1, 1e10).Draw(t, "length")), rapid.Int64Range(0, 1e6).Draw(t, "transactions"),
			rapid.SliceOfN(rapid.Float64Range(0, 1e5), 0, 12).Draw(t, "seconds")...)
		var sum int64
		for _, s := range series(r, 0) {
			if s.Transactions < 0 || s.Span < 0 {
				t.Fatalf("%+v", s)
			}
			sum += s.Transactions
		}
		if sum != r.Transactions {
			t.Fatalf("the series has %d of %d transactions", sum, r.Transactions)
		}
	})
}

func TestTally(t *testing.T) {
	var all engine.Tally
	take := func(start time.Time, r sysbench.Report, replication *result.Replication) {
		b := describe(r)
		b.Start = start
		all.Take(b, more(r, replication))
	}
	begin := time.Now()
	for i, n := range []int64{1, 20, 300} {
		all.Settle(i == 2) // drops the 20
		take(begin.Add(time.Duration(i)*2*time.Second), report(time.Second, n, float64(n)), &result.Replication{Mean: 1, Samples: n})
	}
	totals, err := all.Collect(false)
	if err != nil || totals.Transactions != 301 || totals.Replication.Samples != 301 || len(totals.Series) != 2 || totals.Series[1].At != 4 {
		t.Errorf("%+v, %v", totals, err)
	}
	take(begin, report(time.Second, 7), nil)
	if totals, err := all.Collect(true); err != nil || totals.Transactions != 0 || totals.Histogram != "" {
		t.Errorf("after the only burst was dropped: %+v, %v", totals, err)
	}
}
