package terminal

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"netdelta/report/ui"
	"netdelta/result"
	"netdelta/unit"
)

// behindRun is a run of storage and a database with all that stands behind their figures.
func behindRun() result.Run {
	low, high := 17*time.Microsecond, 21*time.Microsecond
	down, up := -0.99, -0.62
	block := result.Params{Own: result.OwnOf("store", "nbd", "operation", "randread", "block", unit.Bytes(4096))}
	return result.Run{
		Study: "storage",
		Splits: []result.Split{{
			Network: "vxlan", Path: "pod", Baseline: "host", Setting: result.Setting{Workload: "block", Params: block, Placement: result.CrossNode},
			Total: 83 * time.Microsecond, Disk: 3 * time.Microsecond, Common: 61 * time.Microsecond, Added: 19 * time.Microsecond,
			AddedLow: &low, AddedHigh: &high, RoundTrip: 14 * time.Microsecond,
		}},
		Replications: []result.Replicated{{
			Network: "vxlan", Path: "pod", Setting: result.Setting{Workload: "oltp", Params: result.Params{Own: result.OwnOf("mix", "read_write"), Connections: 8}},
			Mean: 1200 * time.Microsecond, Max: 8 * time.Millisecond, Rate: 286,
		}},
		Correlations: []result.Correlation{{
			Setting: result.Setting{Workload: "block", Params: block}, Metric: "rate", Unit: "1/s", RawWorkload: "tcp-rr", RawMetric: "p50", RawUnit: "ns",
			Points:  []result.CorrelationPoint{{Network: "host", Raw: 6e3, Value: 15e3}, {Network: "vxlan", Raw: 8e3, Value: 12e3}},
			Pearson: -0.94, PearsonLow: &down, PearsonHigh: &up, Spearman: -0.9, P: 0.017, Verdict: result.CorrelationFalls,
		}},
		Services: []result.Service{{Name: "ceph-osd.1", Memory: 212 << 20, Restarts: 1}, {Name: "nbd-server", Memory: 4 << 20}},
	}
}

// What stands behind the figures is told on 80 columns, and a run without any of it says nothing.
func TestBehind(t *testing.T) {
	var b bytes.Buffer
	if err := Write(&b, behindRun(), View{Terminal: ui.Terminal{Width: 80, Unicode: true}, Verbose: true}); err != nil {
		t.Fatal(err)
	}
	flat := strings.Join(strings.Fields(b.String()), " ")
	for _, want := range []string{
		"Where the latency goes", "block, nbd, randread, 4KiB vxlan 83.0 µs = disk 3.00 µs, 61.0 µs in client, server and network host, +19.0 µs for vxlan [+17.0 µs, +21.0 µs]",
		"a raw round trip is 14.0 µs of it", "Only the last part depends on the network.",
		"oltp, read_write, 8 connections vxlan replication 1.20 ms (at most 8.00 ms) at 286 TPS",
		"block, nbd, randread, 4KiB with the round trip of tcp-rr: more with a shorter round trip: -0.94 [-0.99, -0.62] of logarithms, -0.90 of ranks (p 0.017), over 2 networks",
		"services ceph-osd.1 212 MiB (started again 1 time), nbd-server 4 MiB",
	} {
		if !strings.Contains(flat, want) {
			t.Errorf("it does not say %q:\n%s", want, b.String())
		}
	}
	for line := range strings.Lines(b.String()) {
		if n := ui.Columns(strings.TrimRight(line, "\n")); n > 80 {
			t.Errorf("a line of %d columns: %q", n, line)
		}
	}
	b.Reset()
	if err := Write(&b, result.Run{Study: "latency"}, View{Terminal: ui.Terminal{Width: 80, Unicode: true}, Verbose: true}); err != nil {
		t.Fatal(err)
	}
	if text := b.String(); strings.Contains(text, "Replication") || strings.Contains(text, "services") || strings.Contains(text, "raw figures") {
		t.Errorf("a run of the network alone says:\n%s", text)
	}
}
