package fleet_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"netdelta/experiment/fleet"
	insight "netdelta/insight/fleet"
	"netdelta/internal/golden"
	report "netdelta/report/fleet"
	"netdelta/result"
	"netdelta/stats"
)

// network is what a fleet could have measured: p50 is 20 us times ratio.
func network(name string, role result.Role, ratio float64) fleet.Network {
	n := fleet.Network{
		Network: name, Role: role,
		Latency: &fleet.Quantiles{P50: 20_000 * ratio, P90: 30_000 * ratio, P99: 70_000 * ratio, P999: 300_000 * ratio, Max: 2e6},
		Late:    &fleet.Quantiles{P50: 60_000, P90: 90_000, P99: 400_000, P999: 900_000, Max: 900_000}, ClockError: 80 * time.Microsecond,
		Slowest: &result.FleetClient{Pod: name + "-7", Node: "w2", Rate: 40_000 / ratio, Throughput: 1e8},
	}
	for b := range 6 {
		n.Builds = append(n.Builds, fleet.Build{Build: b, Pods: 2 * time.Second, Armed: 3500 * time.Millisecond, Clients: 20, Fairness: 0.987})
		for r := range 3 {
			p50 := 20_000 * ratio * (1 + 0.002*float64((b*5+r+b*len(name))%4))
			n.Bursts = append(n.Bursts, fleet.Burst{Build: b, Round: r, Clients: 20, Rate: 2e10 / p50, Throughput: 3e8, P50: p50, P99: 3 * p50})
		}
	}
	return n
}

func measured() insight.Report {
	lost := network("pod", result.RoleCell, 1.3)
	lost.Failed = 7
	for i := range 7 {
		lost.Failures = append(lost.Failures, result.FleetFailure{Build: 1, Pod: "pod-" + string(rune('a'+i)), Node: "w1\x1b[31m", Why: "agent is gone: its pod was evicted:\nno memory"})
	}
	few := result.Delta{Network: "pod", Baseline: "host", Metric: "p99", Judgement: result.Judgement{
		Ratio: 1.3, Blocks: 2, Need: 3, Verdict: string(stats.Unresolved), Excluded: map[string]int{result.ClientsMissing: 2, "baseline " + result.ClientsMissing: 1},
	}}
	empty := fleet.Network{Network: "nodeport", Role: result.RoleCell, Failed: 1, Failures: []result.FleetFailure{{Build: 0, Why: "quota exceeded"}}}
	return insight.Report{
		Outcome: fleet.Outcome{
			Testbed: "kubernetes", Workload: "tcp-rr", Clients: 20, Servers: 1, Burst: 500 * time.Millisecond, Seed: 1,
			Networks: []fleet.Network{network("host", result.RoleBaseline, 1), network("host", result.RoleControl, 0.8), lost, empty},
		},
		Null:   []result.Delta{delta("host", "p50", 0.8, stats.Faster), delta("host", "rate", 1.25, stats.Faster)},
		Deltas: []result.Delta{delta("pod", "p50", 1.3, stats.Unresolved), delta("pod", "rate", 0.77, stats.Unresolved), few},
		Checks: []result.Check{{Trial: "host/tcp-rr/twin#", Check: "null", Observed: "host differs from itself by -20% in p50\x1b[31m"}},
	}
}

// delta is one that the intervals of six builds hold.
func delta(network, metric string, ratio float64, verdict stats.Verdict) result.Delta {
	low, high := ratio*0.99, ratio*1.01
	return result.Delta{
		Network: network, Baseline: "host", Metric: metric,
		Judgement: result.Judgement{Ratio: ratio, RatioLow: &low, RatioHigh: &high, Blocks: 6, Rounds: 18, Verdict: string(verdict)},
	}
}

func TestText(t *testing.T) {
	var out bytes.Buffer
	if err := report.WriteText(&out, measured()); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsRune(out.String(), '\x1b') {
		t.Error("a name reaches the terminal as it is")
	}
	golden.Check(t, "testdata/fleet.txt", out.String())
}

func TestStreams(t *testing.T) {
	n := network("pod", result.RoleBaseline, 1)
	n.Latency = nil
	var out bytes.Buffer
	if err := report.WriteText(&out, insight.Report{Outcome: fleet.Outcome{
		Testbed: "lab", Workload: "tcp-stream", Clients: 1, Servers: 1, Burst: time.Second, Networks: []fleet.Network{n},
	}}); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "testdata/streams.txt", out.String())
}
