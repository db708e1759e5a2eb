package cause

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"netdelta/internal/require"
	"netdelta/probe/evidence"
	"netdelta/result"
)

// visits are so many loads with the same counts in one namespace.
func visits(n int, counters evidence.Counters, drops ...evidence.Drop) []evidence.Visit {
	return slices.Repeat([]evidence.Visit{{Counters: map[string]evidence.Counters{"node0": counters}, Drops: drops}}, n)
}

func names(all []Finding) []string {
	var names []string
	for _, f := range all {
		names = append(names, f.Symptom.Name)
	}
	return names
}

// What is counted on both paths alike is no finding, however much of it there is; what is counted on one is, with its place.
func TestFindComparesPaths(t *testing.T) {
	busy := evidence.Counters{"TcpExt.DelayedACKs": 4000, "Tcp.RetransSegs": 30}
	healthy := evidence.Path{Network: "host", Transactions: 10000, Visits: visits(4, busy)}
	if all := Find(evidence.Path{Network: "vxlan", Transactions: 9000, Visits: visits(4, busy)}, healthy, Symptoms()); len(all) != 0 {
		t.Errorf("alike: %v", names(all))
	}
	dropped := evidence.Drop{Space: "node1", Device: "eth0", Reason: "NETFILTER_DROP", Packets: 5}
	all := Find(evidence.Path{Network: "vxlan", Transactions: 9000, Visits: visits(4, evidence.Counters{"Tcp.RetransSegs": 300}, dropped)}, healthy, Symptoms())
	if got := names(all); !slices.Equal(got, []string{"firewall", "retransmits"}) {
		t.Fatalf("dropped and sent again: %v, want the reason first and what follows from it after", got)
	}
	if e := all[0].Evidence[0]; e.Where != "node1 eth0" || e.Count != 20 || math.Abs(e.PerThousand-20.0/9) > 1e-9 {
		t.Errorf("the evidence is %+v", e)
	}
	// One visit with many of them may be anything.
	once := slices.Concat(visits(1, evidence.Counters{"Tcp.RetransSegs": 5000}), visits(7, nil))
	if all := Find(evidence.Path{Network: "vxlan", Transactions: 9000, Visits: once}, healthy, Symptoms()); len(all) != 0 {
		t.Errorf("in one visit of eight: %v", names(all))
	}
}

// A setting in which the ends differ is a finding, unless the ends of the other path differ in it, too.
func TestFindDifferences(t *testing.T) {
	differs := []evidence.Difference{{Place: "node0", Other: "node1", ConfigChange: result.ConfigChange{Device: "eth0", Setting: "mtu", Was: "1500", Is: "1400"}}}
	healthy := evidence.Path{Network: "host", Transactions: 1000}
	if all := Find(evidence.Path{Network: "vxlan", Transactions: 1000, Ends: differs}, healthy, Symptoms()); !slices.Equal(names(all), []string{"ends-differ"}) {
		t.Errorf("found is %v", names(all))
	}
	healthy.Ends = differs
	if all := Find(evidence.Path{Network: "vxlan", Transactions: 1000, Ends: differs}, healthy, Symptoms()); len(all) != 0 {
		t.Errorf("where both paths differ: %v", names(all))
	}
}

// latencies is a histogram of so many latencies with a heavy tail, and some that wait for a timer.
func latencies(t *testing.T, waiting int, timer time.Duration) string {
	t.Helper()
	h := result.NewHistogram()
	random := rand.New(rand.NewPCG(1, 2))
	for range 20000 { // Pareto with an exponent of 1: a tail up to a second
		require.NoError(t, h.RecordValue(min(int64(50e3/(1-random.Float64())), int64(2e9))))
	}
	for range waiting {
		require.NoError(t, h.RecordValue(int64(float64(timer)*(1+0.05*random.Float64()))))
	}
	text, err := result.EncodeHistogram(h)
	require.NoError(t, err)
	return text
}

// A timer's mark is told from a tail, however heavy.
func TestTimersAreToldFromTails(t *testing.T) {
	for _, timer := range []time.Duration{40 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond, time.Second} {
		tail, marked := bucketsOf(latencies(t, 0, timer)), bucketsOf(latencies(t, 60, timer))
		if n, is := mode(tail, float64(timer)); is {
			t.Errorf("%v: %d in a tail without a mark", timer, n)
		}
		if n, is := mode(marked, float64(timer)); !is || n < 60 {
			t.Errorf("%v: %d, %v of 60 that wait", timer, n, is)
		}
	}
}

// So few healthy paths of a thousand have a finding by chance that are held against paths with the same rates.
func TestHealthyPathsHaveFewFindings(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	poisson := func(mean float64) uint64 {
		n, limit, p := uint64(0), math.Exp(-mean), random.Float64()
		for ; p > limit; n++ {
			p *= random.Float64()
		}
		return n
	}
	path := func() evidence.Path {
		p := evidence.Path{Network: "x", Transactions: 10000}
		for range 5 {
			p.Visits = append(p.Visits, visits(1, evidence.Counters{
				"Tcp.RetransSegs": poisson(2), "TcpExt.TCPTimeouts": poisson(0.5), "Tcp.OutRsts": poisson(20), "conntrack.invalid": poisson(3), "Ip.FragCreates": poisson(9),
			})...)
		}
		return p
	}
	found := 0
	const pairs = 1000
	for range pairs {
		if len(Find(path(), path(), Symptoms())) > 0 {
			found++
		}
	}
	if found > pairs/100 {
		t.Errorf("%d of %d healthy pairs had a finding", found, pairs)
	}
}
