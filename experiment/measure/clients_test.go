package measure

import (
	"math"
	"slices"
	"testing"
	"time"

	"netdelta/agent"
	"netdelta/engine"
	"netdelta/result"
)

// measured is what a client reports of n transactions that took as long each.
func measured(t *testing.T, n int64, each, length, late time.Duration) agent.SyncResult {
	t.Helper()
	h := result.NewHistogram()
	if err := h.RecordValues(each.Nanoseconds(), n); err != nil {
		t.Fatal(err)
	}
	text, err := result.EncodeHistogram(h)
	if err != nil {
		t.Fatal(err)
	}
	return agent.SyncResult{
		Burst: engine.Burst{
			Start: time.Unix(100, 0).Add(late), Duration: length, Transactions: n, Bytes: n * 1000, Moved: n * 1000, CPU: time.Second,
			Mean: float64(each), Throughput: float64(n*8000) / length.Seconds(),
		},
		Totals: engine.Totals{Histogram: text, Disk: &result.Disk{Rate: float64(n)}}, Late: late,
	}
}

// Rates of clients are added up, also of bursts that were not equally long, and percentiles are taken of all transactions together.
func TestSumOfClients(t *testing.T) {
	s := newSum()
	for _, got := range []agent.SyncResult{
		measured(t, 100, time.Millisecond, time.Second, 3*time.Millisecond),
		measured(t, 300, 3*time.Millisecond, 2*time.Second, time.Millisecond),
	} {
		if err := s.add(got); err != nil {
			t.Fatal(err)
		}
	}
	b := s.burst()
	near := func(what string, got, want float64) {
		if math.Abs(got-want) > 0.002*want {
			t.Errorf("%s is %v, want %v", what, got, want)
		}
	}
	near("rate", perSecond(b), 100+150)
	near("throughput", b.Throughput, 800_000+1_200_000)
	near("p50", b.P50, 3e6)
	near("min", b.Min, 1e6)
	near("mean", b.Mean, 2.5e6)
	if b.Transactions != 400 || b.Moved != 400_000 || b.CPU != 2*time.Second || !b.Start.Equal(time.Unix(100, 1e6)) || s.disk.Rate != 100 {
		t.Errorf("%+v, the disk %+v", b, s.disk)
	}
	if !slices.Equal(s.late, []time.Duration{3 * time.Millisecond, time.Millisecond}) {
		t.Errorf("late by %v", s.late)
	}
}

// A burst does not count whose clients began further apart than a fifth of it; of one client there is nothing to hold together.
func TestApart(t *testing.T) {
	k := &clients{began: 500 * time.Millisecond}
	if !k.apart(2*time.Second) || k.apart(3*time.Second) || (*clients)(nil).apart(0) {
		t.Error("half a second: too much of 2 s, little enough of 3 s")
	}
}

// The proof of several clients is as good as the worst of them, and findings name their pod.
func TestProofOfFurther(t *testing.T) {
	first := result.Path{OK: true, Payload: 10, MTU: 1500, Weak: []string{"no plan"}, Notes: []string{"as it is"}, Hops: []result.PathHop{{}}, Encapsulation: "vxlan"}
	good := withFurther(first, "b", first)
	if !good.OK || good.Payload != 20 || len(good.Findings) > 0 || len(good.Weak) != 1 || len(good.Notes) != 1 || len(good.Hops) != 1 {
		t.Errorf("%+v", good)
	}
	bad := withFurther(first, "c", result.Path{Findings: []string{"eth0 carried nothing"}, Weak: []string{"no counters"}, MTU: 1400, Encapsulation: "none"})
	if bad.OK || !slices.Equal(bad.Findings, []string{"from pod c: eth0 carried nothing"}) || len(bad.Weak) != 2 || bad.MTU != 1400 || len(bad.Notes) != 2 {
		t.Errorf("%+v", bad)
	}
}
