package insight_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"netdelta/insight"
	"netdelta/report/words"
	"netdelta/result"
	"netdelta/unit"
	"netdelta/workload"
)

// servedBy turns the world's trials into trials of a workload of transactions per second, whose rate is the inverse of its latency.
func servedBy(workload string, cells []result.Cell, trials []result.Trial) {
	for i := range cells {
		cells[i].Workload, cells[i].Params = workload, result.Params{Own: result.OwnOf("store", "nbd", "block", unit.Bytes(4096))}
	}
	for i := range trials {
		b := &trials[i].Bursts
		for _, p50 := range b.P50 {
			b.Rate = append(b.Rate, 1e9/p50)
		}
	}
}

// storageJudge knows the headline of storage.
func storageJudge() words.Judge {
	return words.NewJudge([]workload.Workload{{Name: "block", Headline: "rate"}})
}

// conclude judges a world of storage, changed by alter.
func conclude(t *testing.T, alter func(trials []result.Trial)) result.Run {
	t.Helper()
	w := usual()
	cells, trials := w.cells(), w.trials(t)
	servedBy("block", cells, trials)
	alter(trials)
	run := result.Run{Cells: cells, Confidence: 0.95, Margin: 0.02, Seed: 1}
	storageJudge().Conclude(&run, trials)
	return run
}

// A workload whose headline is its rate has it in IOPS, and less of it where the network costs more.
func TestRateIsTheHeadline(t *testing.T) {
	run := conclude(t, func([]result.Trial) {})
	found := false
	for _, d := range run.Deltas {
		if !d.Headline || d.Network != "vxlan" {
			continue
		}
		found = true
		if d.Metric != "rate" || d.Unit != "1/s" || d.Better != "higher" || math.Abs(d.Ratio-1/1.31) > 0.02 || d.Verdict != "slower" {
			t.Errorf("%+v", d)
		}
		if got := words.Value(words.Unit(d), 50000); got != "50000 IOPS" {
			t.Errorf("its rate is %q", got)
		}
	}
	if !found {
		t.Error("vxlan has no headline")
	}
	says := words.Conclusion(insight.Conclude(insight.Parts(run)[0]))
	if !strings.Contains(says, "IOPS") || !strings.Contains(says, "loses the least") {
		t.Errorf("the conclusion says %q", says)
	}
}

// What bounded most trials of a cell is the delta's bound; the setting says what its deltas are therefore.
func TestBoundOfDeltas(t *testing.T) {
	by := func(all string, vxlan string) func([]result.Trial) {
		return func(trials []result.Trial) {
			for i := range trials {
				trials[i].Bound = &result.Bound{By: all}
				if trials[i].Cell == "vxlan" {
					trials[i].Bound.By = vxlan
				}
			}
			trials[0].Bound = nil
			trials[1].Bound = &result.Bound{By: "latency"} // one of many
		}
	}
	for _, c := range []struct{ all, vxlan, want string }{
		{"cpu", "cpu", "Bounded by CPU: these deltas are CPU costs."},
		{"link", "cpu", "Bounded differently: host, bridge and macvlan by the link, vxlan by CPU; the deltas measure more than one thing."},
		{"latency", "latency", "Bounded by latency: no link, disk or processor is full, and each answer is waited for."},
	} {
		run := conclude(t, by(c.all, c.vxlan))
		if got := words.Bounded(insight.Parts(run)[0].Bounds()); got != c.want {
			t.Errorf("%s and %s: %q", c.all, c.vxlan, got)
		}
	}
	if got := words.Bounded(insight.Parts(conclude(t, func([]result.Trial) {}))[0].Bounds()); got != "" {
		t.Errorf("where it is unknown: %q", got)
	}
}

// Trials that the disk bounds fail a check, and the advice is to leave the network alone.
func TestDiskIsTheBottleneck(t *testing.T) {
	run := conclude(t, func(trials []result.Trial) {
		for i := range trials {
			trials[i].Bound = &result.Bound{By: result.BoundDisk, Disk: 0.95, Link: -1, CPU: 0.4}
			trials[i].Disk = &result.Disk{Rate: 52000, P50: 18 * time.Microsecond}
		}
	})
	i := slices.IndexFunc(run.Checks, func(c result.Check) bool { return c.Check == insight.CheckDisk })
	if i < 0 || run.Checks[i].Observed != "95% of what the disk does without a network (52000 operations/s)" {
		t.Fatalf("the checks are %+v", run.Checks)
	}
	if !slices.ContainsFunc(run.Advice, func(a result.Advice) bool { return strings.HasPrefix(a.Says, "Don't change the network for block") }) {
		t.Errorf("the advice is %+v", run.Advice)
	}
}

// Errors are a check of their trial and a warning of the delta; services that ailed are told with what ailed them.
func TestErrorsAndServices(t *testing.T) {
	run := conclude(t, func(trials []result.Trial) {
		for i := range trials {
			tr := &trials[i]
			tr.Transactions = 97
			if tr.Cell != "vxlan" {
				continue
			}
			tr.Errors = 3
			tr.Bursts.Disturbed[0], tr.Bursts.Disturbed[1] = insight.Unwell+": osd.1 is down", insight.Unwell+": osd.1 is down"
			tr.Services = []result.Service{{Name: "ceph-osd.1", Memory: 200 << 20, Restarts: tr.Build % 2}, {Name: "ceph-mon", Memory: 40 << 20}}
		}
	})
	count := map[string]int{}
	for _, c := range run.Checks {
		count[c.Check]++
		switch {
		case c.Check == insight.CheckErrors && (c.Expected != "0 errors" || c.Observed != "3 of 100"):
			t.Errorf("%+v", c)
		case c.Check == insight.CheckServices && c.Observed != "osd.1 is down (2 bursts)":
			t.Errorf("%+v", c)
		}
	}
	if count[insight.CheckErrors] != 8 || count[insight.CheckServices] != 8 {
		t.Errorf("the checks are %v", count)
	}
	if got, want := words.Services(run.Services), "ceph-mon 40 MiB, ceph-osd.1 200 MiB (started again 1 time)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for _, d := range run.Deltas {
		want := d.Network == "vxlan"
		if got := slices.Contains(d.Warnings, "24 of 800 transactions failed and are in no figure"); got != want {
			t.Errorf("%s warns %v", d.Network, d.Warnings)
		}
	}
}

// The latency of storage is the disk's, what the baseline adds to it, and what the network adds to that.
func TestSplits(t *testing.T) {
	run := conclude(t, func(trials []result.Trial) {
		for i := range trials {
			trials[i].Disk = &result.Disk{Rate: 1e5, P50: 3 * time.Microsecond}
		}
	})
	if len(run.Splits) != 3 {
		t.Fatalf("%d splits, want one for each network", len(run.Splits))
	}
	for _, s := range run.Splits {
		if sum := s.Disk + s.Common + s.Added; s.Disk != 3*time.Microsecond || sum-s.Total < -2 || sum-s.Total > 2 {
			t.Errorf("%s: %v + %v + %v is not %v", s.Network, s.Disk, s.Common, s.Added, s.Total)
		}
		if s.AddedLow == nil || s.AddedHigh == nil || *s.AddedLow > s.Added || *s.AddedHigh < s.Added {
			t.Errorf("%s: the interval is %v to %v about %v", s.Network, s.AddedLow, s.AddedHigh, s.Added)
		}
		if s.Network == "vxlan" && !strings.Contains(words.Split(s), "= disk 3.00 µs, ") {
			t.Errorf("%q", words.Split(s))
		}
	}
}

// What the cluster says of its replication is shown with what its clients got done.
func TestReplications(t *testing.T) {
	run := conclude(t, func(trials []result.Trial) {
		for i := range trials {
			trials[i].Replication = &result.Replication{
				Mean: time.Duration(trials[i].Build+1) * time.Millisecond, Max: 90 * time.Millisecond, Samples: 5,
			}
		}
		trials[0].Replication.Samples = 0
	})
	if len(run.Replications) != 4 { // not the A/A control
		t.Fatalf("%+v", run.Replications)
	}
	for _, r := range run.Replications {
		if r.Mean < 4*time.Millisecond || r.Mean > 6*time.Millisecond || r.Max != 90*time.Millisecond || r.Rate <= 0 {
			t.Errorf("%+v", r)
		}
	}
	r := result.Replicated{Setting: result.Setting{Workload: "oltp"}, Mean: 1200 * time.Microsecond, Max: 8 * time.Millisecond, Rate: 301}
	if got, want := words.Replication(r), "replication 1.20 ms (at most 8.00 ms) at 301 TPS"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// alongside is a run of storage and of round trips over the same networks.
func alongside(t *testing.T, networks []string, claims ...string) result.Run {
	t.Helper()
	w := usual()
	w.networks = networks
	for i, n := range networks {
		w.logs[n] = math.Log(1 + 0.1*float64(i+1))
	}
	cells, trials := w.cells(), w.trials(t)
	storage, stored := w.cells(), w.trials(t)
	servedBy("block", storage, stored)
	for i := range storage {
		storage[i].ID += "/block"
	}
	for i := range stored {
		stored[i].Cell += "/block"
	}
	run := result.Run{Cells: slices.Concat(cells, storage), Confidence: 0.95, Margin: 0.02, Seed: 1}
	for _, expect := range claims {
		run.Claims = append(run.Claims, result.Claim{ID: "c", Expect: expect})
	}
	storageJudge().Conclude(&run, slices.Concat(trials, stored))
	return run
}

// Where an application gets done the less the longer a round trip takes, the two correlate by -1.
func TestCorrelations(t *testing.T) {
	run := alongside(t, []string{"a", "b", "c", "d", "e"})
	if len(run.Correlations) != 1 {
		t.Fatalf("%+v", run.Correlations)
	}
	c := run.Correlations[0]
	if c.Workload != "block" || c.RawWorkload != "tcp-rr" || c.RawMetric != "p50" || len(c.Points) != 6 || c.Points[0].Network != "host" {
		t.Errorf("%+v", c)
	}
	if c.Pearson > -0.95 || c.PearsonHigh == nil || *c.PearsonHigh > -0.5 || c.Spearman > -0.99 || c.P > 0.01 {
		t.Errorf("correlates by %v %s", c.Pearson, words.Correlation(c))
	}
	if c.Verdict != result.CorrelationFalls || !strings.HasPrefix(words.Correlation(c), "more with a shorter round trip: -") {
		t.Errorf("the verdict is %q: %s", c.Verdict, words.Correlation(c))
	}
	if got := alongside(t, []string{"a"}).Correlations; len(got) != 0 {
		t.Errorf("two networks correlate: %+v", got)
	}
	few := alongside(t, []string{"a", "b"}).Correlations
	if len(few) != 1 || few[0].PearsonLow != nil || few[0].Verdict != result.CorrelationOpen || !strings.Contains(words.Correlation(few[0]), "too few for an interval") {
		t.Errorf("three networks: %+v", few)
	}
}

// Claims about what goes with what have the verdicts of the correlations, and nothing that was not measured is confirmed.
func TestClaimsOfCorrelation(t *testing.T) {
	many, few := []string{"a", "b", "c", "d", "e"}, []string{"a", "b"}
	for _, c := range []struct {
		networks           []string
		expect, want, says string
	}{
		{many, "rate falls with p50 of tcp-rr", insight.Confirmed, "across nodes: more with a shorter round trip: -"},
		{many, "rate falls with p50 of tcp-rr where workload=block", insight.Confirmed, "across nodes: more with a shorter round trip: -"},
		{many, "rate rises with p50 of tcp-rr", insight.Contradicted, "across nodes: more with a shorter round trip: -"},
		{many, "rate rises with throughput of tcp-stream", insight.NotTested, "not measured over three networks: rate with throughput of tcp-stream"},
		{many, "rate falls with p50 of tcp-rr where workload=oltp", insight.NotTested, "not in this run: workload=oltp"},
		{few, "rate falls with p50 of tcp-rr", insight.Undecided, "across nodes: unresolved: -"},
		{many, "rate falls with p50 of tcp-rr; p50 of a below host where workload=tcp-rr", insight.Contradicted, "confirmed rate across nodes: more with"},
	} {
		if got := alongside(t, c.networks, c.expect).Claims[0]; got.Verdict != c.want || !strings.Contains(got.Measured, c.says) {
			t.Errorf("%s: %s, want %s: %s", c.expect, got.Verdict, c.want, got.Measured)
		}
	}
}

// What several clients did together is told by the node of each, as the median over trials, but not of the A/A control.
func TestByClient(t *testing.T) {
	run := conclude(t, func(trials []result.Trial) {
		for i := range trials {
			trials[i].Clients = []result.ClientRate{{Node: "w2", Rate: 100}, {Node: "w1", Rate: float64(1000 + trials[i].Build)}}
		}
	})
	if len(run.Clients) == 0 {
		t.Fatal("nothing is said of clients")
	}
	for _, r := range run.Clients {
		if len(r.Clients) != 2 || r.Clients[0].Node != "w1" || r.Clients[0].Rate <= 1000 || r.Clients[1] != (result.ClientRate{Node: "w2", Rate: 100}) || strings.Contains(r.Cell, "twin") {
			t.Errorf("%s: %+v", r.Cell, r.Clients)
		}
	}
	said := words.Clients(run.Clients)
	if last := said[len(said)-1]; len(said) != len(run.Clients) || !strings.HasSuffix(last, " IOPS, w2 100 IOPS") || !strings.Contains(last, ": w1 100") {
		t.Errorf("it is said as %q", said)
	}
}
