package html

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"netdelta/report/browsertest"
	"netdelta/result"
	"netdelta/unit"
)

// stored is a simulated run of storage and round trips, with all that stands behind its figures.
func stored(t *testing.T) (result.Run, []result.Trial) {
	t.Helper()
	run, trials := usual().run(t)
	block := result.Params{Own: result.OwnOf("store", "nbd", "operation", "randread", "block", unit.Bytes(4096))}
	low, high := 17*time.Microsecond, 21*time.Microsecond
	for i, network := range []string{"bridge", "vxlan"} {
		added := time.Duration(i+1) * 9 * time.Microsecond
		run.Splits = append(run.Splits, result.Split{
			Network: network, Path: "pod", Baseline: "host", Setting: result.Setting{Workload: "block", Params: block, Placement: result.CrossNode},
			Total: 64*time.Microsecond + added, Disk: 3 * time.Microsecond, Common: 61 * time.Microsecond, Added: added,
			AddedLow: &low, AddedHigh: &high, RoundTrip: 14 * time.Microsecond,
		})
	}
	run.Replications = []result.Replicated{{
		Network: "vxlan", Path: "pod", Setting: result.Setting{Workload: "oltp", Params: result.Params{Own: result.OwnOf("mix", "read_write"), Connections: 8}, Placement: result.CrossNode},
		Mean: 1200 * time.Microsecond, Max: 8 * time.Millisecond, Rate: 286,
	}}
	down, up := -0.99, -0.62
	c := result.Correlation{
		Setting: result.Setting{Workload: "block", Params: block, Placement: result.CrossNode}, Metric: "rate", Unit: "1/s", RawWorkload: "tcp-rr", RawMetric: "p50", RawUnit: "ns",
		Pearson: -0.94, PearsonLow: &down, PearsonHigh: &up, Spearman: -0.9, P: 0.017, Verdict: result.CorrelationFalls,
	}
	for i, network := range []string{"host", "macvlan", "bridge", "routed", "vxlan"} {
		c.Points = append(c.Points, result.CorrelationPoint{Network: network, Raw: 6000 + 900*float64(i), Value: 15600 - 1100*float64(i)})
	}
	run.Correlations = []result.Correlation{c}
	run.Services = []result.Service{{Name: "nbd-server", Memory: 4 << 20, Restarts: 1}}
	for i := range run.Deltas {
		run.Deltas[i].Bound = result.BoundCPU
	}
	return run, trials
}

// The page shows what stands behind figures of storage and databases, and nothing of it for other runs.
func TestBehindIsShown(t *testing.T) {
	page := func(run result.Run) string {
		var b bytes.Buffer
		if err := Write(&b, run, nil); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	run, _ := stored(t)
	text := page(run)
	for _, want := range []string{
		"Where the latency goes", "82.0 µs", "3.00 µs", "61.0 µs", "+18.0 µs", "14.0 µs", "Bounded by CPU: these deltas are CPU costs.",
		"replication 1.20 ms (at most 8.00 ms) at 286 TPS", "nbd-server 4 MiB (started again 1 time)",
		"block, nbd, randread, 4KiB, across nodes against the round trip of tcp-rr", "-0.94 [-0.99, -0.62] of logarithms", "IOPS",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if n := strings.Count(text, `class="ds big`); n != 5 {
		t.Errorf("%d dots, want one for each network", n)
	}
	if plain, _ := usual().run(t); strings.Contains(page(plain), "Latency breakdown") {
		t.Error("a run of networks alone has something behind it")
	}
}

// In a browser the part is there in all widths, and nothing is wider than the page.
func testBehindInBrowser(t *testing.T, b *browsertest.Browser) {
	run, trials := stored(t)
	b.Open(written(t, run, trials))
	views(b, func(width int64, scheme string) {
		if len(visible(b, "#behind .plot", "e.tagName")) != 1 || len(visible(b, "#behind tbody tr", "e.tagName")) != 2 {
			t.Errorf("%d pixels, %s: the part is not all there", width, scheme)
		}
		if over := browsertest.Ask[int](b, `document.documentElement.scrollWidth - document.documentElement.clientWidth`); over > 0 {
			t.Errorf("%d pixels, %s: the page is %d pixels too wide", width, scheme, over)
		}
		if *pictures != "" {
			b.Picture(*pictures+"/behind-"+scheme+"-"+number(float64(width))+".png", "#behind", false)
		}
	})
	b.Quiet()
}
