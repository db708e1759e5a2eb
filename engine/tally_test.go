package engine_test

import (
	"slices"
	"testing"
	"time"

	"netdelta/engine"
	"netdelta/internal/latency"
	"netdelta/result"
)

// A burst counts unless the controller says otherwise, and after a Collect everything begins anew.
func TestTally(t *testing.T) {
	begin := time.Now()
	after := func(s time.Duration, n int64) engine.Burst {
		return engine.Burst{Start: begin.Add(s), Duration: time.Second, Transactions: n, Bytes: 10 * n, Errors: n, Sent: n, Lost: n, Reordered: n}
	}
	ns := func(v int64) engine.More {
		return engine.More{Latencies: func(h *latency.Histogram) { h.Record(v, 1) }}
	}
	var all engine.Tally
	all.Take(after(0, 1), ns(100))
	all.Settle(false)
	all.Take(after(2*time.Second, 20), ns(1e6))
	all.Settle(true)
	all.Settle(false) // nothing waits any more
	all.Take(after(4*time.Second, 300), engine.More{
		Series: func(at float64) []result.Second {
			return []result.Second{{At: at, Span: 0.5}, {At: at + 0.5, Span: 0.5}}
		},
		Add: func(sum *engine.Totals) { sum.Disk = &result.Disk{Rate: 7} },
	})
	got, err := all.Collect(false)
	if err != nil {
		t.Fatal(err)
	}
	if got.Transactions != 301 || got.Bytes != 3010 || got.Errors != 301 || got.Sent != 301 || got.Lost != 301 || got.Reordered != 301 || got.Disk == nil {
		t.Errorf("%+v", got)
	}
	want := []result.Second{{At: 0, Span: 1, Transactions: 1, Bytes: 10, Lost: 1}, {At: 4, Span: 0.5}, {At: 4.5, Span: 0.5}}
	if !slices.Equal(got.Series, want) {
		t.Errorf("the series is %+v", got.Series)
	}
	if h, err := result.DecodeHistogram(got.Histogram); err != nil || h.TotalCount() != 1 || h.Max() > 101 {
		t.Errorf("its latencies: %v", err)
	}
	if got, err := all.Collect(false); err != nil || got.Transactions != 0 || got.Series != nil || got.Histogram != "" || got.Disk != nil {
		t.Errorf("after a collect: %+v, %v", got, err)
	}
}

// Where a client says when it was opened, the series counts from there, also after a Collect.
func TestTallyCountsFromItsOpening(t *testing.T) {
	opened := time.Now()
	all := engine.Tally{Opened: opened}
	for i := range 2 {
		all.Take(engine.Burst{Start: opened.Add(time.Duration(i+1) * time.Second), Duration: time.Second}, engine.More{})
		got, err := all.Collect(false)
		if err != nil || len(got.Series) != 1 || got.Series[0].At != float64(i+1) {
			t.Errorf("%+v, %v", got.Series, err)
		}
	}
}

func TestBurstSpecCheck(t *testing.T) {
	for _, good := range []engine.BurstSpec{{Duration: 1}, {Transactions: 1}, {Duration: 1, Transactions: 1, Warmup: 1, Deadline: 1}} {
		if err := good.Check(); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []engine.BurstSpec{{}, {Warmup: 1}, {Duration: -1}, {Transactions: -1}, {Duration: 1, Warmup: -1}, {Duration: 1, Deadline: -1}} {
		if bad.Check() == nil {
			t.Errorf("%+v is taken for a burst", bad)
		}
	}
}
