package insight_test

import (
	"math"
	"testing"

	"netdelta/insight"
	"netdelta/report/reporttest"
	"netdelta/report/words"
	"netdelta/result"
	"netdelta/unit"
	"netdelta/workload/block"
)

// measured is a headline delta of a round trip across nodes on a baseline of 30 µs, the interval in percent.
func measured(network, verdict string, low, ratio, high float64) result.Delta {
	const baseline = 30_000
	low, ratio, high = 1+low/100, 1+ratio/100, 1+high/100
	differenceLow, differenceHigh := baseline*(low-1), baseline*(high-1)
	return result.Delta{
		Cell: network, Network: network, Baseline: "host", Setting: result.Setting{Workload: "tcp-rr", Placement: result.CrossNode}, Path: "pod",
		Metric: "p50", Unit: "ns", Better: "lower", Headline: true, Judgement: result.Judgement{Verdict: verdict, Blocks: 8, Ratio: ratio, RatioLow: &low, RatioHigh: &high, Difference: baseline * (ratio - 1), DifferenceLow: &differenceLow, DifferenceHigh: &differenceHigh},
		BaselineValue: baseline, Value: baseline * ratio,
	}
}

// hasty is measured in too few builds.
func hasty(network string, ratio float64) result.Delta {
	d := measured(network, "unresolved", 0, ratio, 0)
	d.RatioLow, d.RatioHigh, d.DifferenceLow, d.DifferenceHigh = nil, nil, nil, nil
	d.Blocks, d.Need = 2, 6
	return d
}

// chancy has an interval that excludes no change, and a test over its family that does not yet.
func chancy(d result.Delta) result.Delta {
	p := 0.06
	d.PAdjusted = &p
	return d
}

// stream turns a delta into one of throughput.
func stream(d result.Delta) result.Delta {
	scale := 1e10 / d.BaselineValue
	d.Metric, d.Unit, d.Better = "throughput", "bit/s", "higher"
	d.BaselineValue *= scale
	d.Value *= scale
	d.Difference *= scale
	return d
}

// lossy turns a delta into one of loss: its percents are the points of loss.
func lossy(d result.Delta) result.Delta {
	low, high := *d.RatioLow-1, *d.RatioHigh-1
	d.Metric, d.Unit, d.Difference, d.DifferenceLow, d.DifferenceHigh = "loss", "ratio", d.Ratio-1, &low, &high
	d.Ratio, d.RatioLow, d.RatioHigh = 0, nil, nil
	return d
}

// runOf is a run with the deltas of one setting.
func runOf(deltas ...result.Delta) result.Run {
	cell := result.Cell{Network: "host", Placement: result.CrossNode, Workload: "tcp-rr", Path: "pod"}
	baseline, control := cell, cell
	baseline.ID, baseline.Role, control.ID, control.Role = "host", result.RoleBaseline, "twin", result.RoleControl
	run := result.Run{Margin: 0.02, Cells: []result.Cell{baseline, control}, Deltas: deltas}
	for _, d := range deltas {
		run.Cells = append(run.Cells, result.Cell{
			ID: d.Cell, Network: d.Network, Placement: d.Placement, Workload: d.Workload, Path: d.Path, Role: result.RoleCell,
		})
	}
	run.Contrasts = reporttest.Contrasts(deltas...)
	return run
}

func TestConclusions(t *testing.T) {
	bridge, routed := measured("bridge", "slower", 10.1, 11, 12), measured("routed", "slower", 10.8, 11.6, 12.3)
	macvlan, vxlan := measured("macvlan", "slower", 2.5, 3.1, 3.6), measured("vxlan", "slower", 30, 31.4, 33)
	ipvlan := measured("ipvlan-l2", "slower", 2.9, 3.4, 3.8)
	flannel := measured("vxlan-routed", "slower", 29, 30.4, 32)
	free, free2 := measured("macvlan", "same", -0.5, 0.3, 1.1), measured("ipvlan-l2", "same", -0.4, 0.4, 1)
	quick := measured("sockmap", "faster", -42, -40, -38)
	vague := measured("bridge", "unresolved", -3, 1, 5)
	published := bridge
	published.Path = "nodeport"
	for name, tc := range map[string]struct {
		deltas []result.Delta
		want   string
	}{
		"least and most": {
			[]result.Delta{vxlan, bridge, macvlan},
			"macvlan costs the least (+3.1%, +930 ns) and vxlan the most (+31%, +9.42 µs).",
		},
		"two in the middle": {
			[]result.Delta{vxlan, bridge, macvlan, routed},
			"macvlan costs the least (+3.1%, +930 ns) and vxlan the most (+31%, +9.42 µs); tied: bridge, routed.",
		},
		"groups everywhere": {
			[]result.Delta{vxlan, bridge, macvlan, routed, ipvlan, flannel},
			"macvlan and ipvlan-l2 cost the least (+3.1% to +3.4%) and vxlan-routed and vxlan the most (+30% to +31%); " +
				"tied: bridge, routed.",
		},
		"none can be ranked": {
			[]result.Delta{routed, bridge},
			"bridge and routed cost more than host (+11% to +12%), tied.",
		},
		"one known too loosely to be ranked": {
			[]result.Delta{vxlan, measured("bridge", "slower", 2, 15, 31), macvlan},
			"macvlan costs the least (+3.1%, +930 ns) and vxlan the most (+31%, +9.42 µs).",
		},
		"one network":        {[]result.Delta{vxlan}, "vxlan costs 31% more than host (+9.42 µs)."},
		"one published port": {[]result.Delta{published}, "bridge (nodeport) costs 11% more than host (+3.30 µs)."},
		"one that is free":   {[]result.Delta{free}, "macvlan is the same as host to within 2%."},
		"all are free":       {[]result.Delta{free2, free}, "macvlan and ipvlan-l2 are the same as host to within 2%."},
		"one that is faster": {[]result.Delta{quick}, "sockmap (-40%, -12.0 µs) is faster than host."},
		"one unresolved":     {[]result.Delta{vague}, "bridge is unresolved (-3.0% to +5.0%)."},
		"none resolved":      {[]result.Delta{vague, measured("routed", "unresolved", -4, 1.5, 6)}, "bridge and routed are unresolved."},
		"below the floor": {
			[]result.Delta{measured("macvlan", "unresolved", 2.2, 2.8, 3.4), vague},
			"bridge is unresolved (-3.0% to +5.0%); macvlan (+2.8%, +840 ns) is within the noise floor.",
		},
		"not yet beyond chance": {
			[]result.Delta{chancy(measured("macvlan", "unresolved", 9, 10, 11)), vague},
			"bridge is unresolved (-3.0% to +5.0%); " +
				"macvlan (+10%, +3.00 µs) probably differs, not yet significant.",
		},
		"one build":           {[]result.Delta{hasty("bridge", 11), hasty("vxlan", 30)}, "too few builds for a verdict (2 of 6)."},
		"few builds for some": {[]result.Delta{hasty("bridge", 11), vxlan}, "too few builds for a verdict on bridge (2 of 6); vxlan costs 31% more than host (+9.42 µs)."},
		"of all kinds": {
			[]result.Delta{vxlan, routed, free, quick, vague},
			"sockmap (-40%, -12.0 µs) is faster than host; macvlan is the same as host to within 2%; " +
				"bridge is unresolved (-3.0% to +5.0%); " +
				"of the others, routed costs the least (+12%, +3.48 µs) and vxlan the most (+31%, +9.42 µs).",
		},
		"one that loses throughput": {[]result.Delta{stream(measured("vxlan", "slower", -25, -24, -23))}, "vxlan loses 24% against host (-2.40 Gbit/s)."},
		"throughput": {
			[]result.Delta{stream(measured("vxlan", "slower", -25, -24, -23)), stream(measured("routed", "slower", -6, -5, -4))},
			"routed loses the least (-5.0%, -500 Mbit/s) and vxlan the most (-24%, -2.40 Gbit/s).",
		},
		"throughput that can't be ranked": {
			[]result.Delta{stream(measured("vxlan", "slower", -25, -24, -23)), stream(measured("geneve", "slower", -26, -25, -24))},
			"vxlan and geneve lose against host (-24% to -25%), tied.",
		},
		"loss":            {[]result.Delta{lossy(measured("vxlan", "slower", 4, 5, 6))}, "vxlan is worse than host by 5.00 points."},
		"losses":          {[]result.Delta{lossy(measured("vxlan", "slower", 4, 5, 6)), lossy(measured("bridge", "slower", 1, 1.5, 2))}, "bridge costs the least (+1.50 points) and vxlan the most (+5.00 points)."},
		"no loss":         {[]result.Delta{lossy(measured("vxlan", "same", -0.01, 0, 0.01))}, "vxlan is the same as host to within 0.1%."},
		"unresolved loss": {[]result.Delta{lossy(measured("vxlan", "unresolved", -1, 2, 5))}, "vxlan is unresolved."},
	} {
		t.Run(name, func(t *testing.T) {
			parts := insight.Parts(runOf(tc.deltas...))
			if len(parts) != 1 {
				t.Fatalf("%d parts of one setting", len(parts))
			}
			if got := words.Conclusion(insight.Conclude(parts[0])); got != "Across nodes, "+tc.want {
				t.Errorf("got  %q\nwant %q", got, "Across nodes, "+tc.want)
			}
		})
	}
}

func TestConclusionWithoutDeltas(t *testing.T) {
	says := func(run result.Run) string { return words.Conclusion(insight.Conclude(insight.Parts(run)[0])) }
	run := runOf(measured("vxlan", "slower", 30, 31, 32))
	run.Deltas = nil
	want := "Across nodes, nothing could be compared with host: the trials failed, were disturbed or are still to come."
	if got := says(run); got != want {
		t.Errorf("got %q", got)
	}
	run.Cells[2].Unsupported = "needs vxlan"
	if got := says(run); got != "Across nodes, no network was measured." {
		t.Errorf("got %q", got)
	}
	run = runOf(measured("vxlan", "slower", 30, 31, 32))
	run.Cells = run.Cells[2:]
	run.Deltas = nil
	if got := says(run); got != "Across nodes, there was no baseline to compare with." {
		t.Errorf("got %q", got)
	}
	if got := says(runOf()); got != "" {
		t.Errorf("conclusion of a run of nothing but a baseline: %v", got)
	}
	if got := insight.Parts(result.Run{}); got != nil {
		t.Errorf("parts of an empty run: %v", got)
	}
}

func TestWords(t *testing.T) {
	for _, tc := range []struct{ got, want string }{
		{words.Value("ns", 21_345.4), "21.3 µs"},
		{words.Value("bit/s", 9.4134e9), "9.41 Gbit/s"},
		{words.Value("bit/s", 999.96e6), "1.00 Gbit/s"},
		{words.Value("bit/s", 123_456), "123 kbit/s"},
		{words.Value("bit/s", 12), "12 bit/s"},
		{words.Value("ratio", 0.0123), "1.23%"},
		{words.Value("1/s", 4321.5), "4322/s"},
		{words.Difference("ns", -400.2), "-400 ns"},
		{words.Difference("bit/s", 1.5e9), "+1.50 Gbit/s"},
		{words.Difference("ratio", -0.02), "-2.00 points"},
		{words.Difference("1/s", 0), "0/s"},
		{words.Value("IOPS", 18450.4), "18450 IOPS"},
		{words.Value("TPS", 301.26), "301 TPS"},
		{words.Value("TPS", 26.27), "26.3 TPS"},
		{words.Value("requests/s", 2.678), "2.68 requests/s"},
		{words.Difference("IOPS", -473.2), "-473 IOPS"},
		{words.Unit(result.Delta{Setting: result.Setting{Workload: "block"}, Unit: "1/s"}), "IOPS"},
		{words.Unit(result.Delta{Setting: result.Setting{Workload: "oltp"}, Unit: "1/s"}), "TPS"},
		{words.Unit(result.Delta{Setting: result.Setting{Workload: "http"}, Unit: "1/s"}), "requests/s"},
		{words.Unit(result.Delta{Setting: result.Setting{Workload: "block"}, Unit: "ns"}), "ns"},
		{
			words.Load(result.Setting{Workload: "block", Params: result.Params{
				Own: result.OwnOf("store", "nbd", "operation", "randread", "block", unit.Bytes(4096), "depth", 16), Clients: 3,
			}.Bind(block.Workload().Parameters)}),
			"block, nbd, randread, 4KiB, depth 16, 3 clients",
		},
		{
			words.Load(result.Setting{Workload: "http", Params: result.Params{File: 600, Reconnect: true, Connections: 8, Engine: "wrk"}}),
			"http, 600B, a connection each, 8 connections, by wrk",
		},
		{words.Load(result.Setting{Workload: "oltp", Params: result.Params{Own: result.OwnOf("mix", "read_write"), Connections: 8}}), "oltp, read_write, 8 connections"},
		{words.Percent(1.012), "+1.2%"},
		{words.Percent(1.314), "+31%"},
		{words.Percent(1), "0.0%"},
		{words.Percent(0.6), "-40%"},
		{words.Percent(math.NaN()), "n/a"},
		{words.List(nil), ""},
		{words.List([]string{"a"}), "a"},
		{words.List([]string{"a", "b", "c"}), "a, b and c"},
		{words.Where(result.SameNode), "On one node"},
		{words.Where(""), "Here"},
		{words.Load(result.Setting{Workload: "tcp-rr"}), "tcp-rr"},
		{
			words.Load(result.Setting{Workload: "udp-stream", Params: result.Params{
				Message: 300, Connections: 4, Rate: 1e9, RequestRate: 1000, CPU: "two", BusyPoll: 50_000, CongestionControl: "bbr", Nagle: true, MTU: 9000,
			}}),
			"udp-stream, 300B, 4 connections, at 1Gbit/s, at 1000/s, two CPUs, busy poll 50µs, bbr, Nagle, MTU 9000",
		},
	} {
		if tc.got != tc.want {
			t.Errorf("got %q, want %q", tc.got, tc.want)
		}
	}
}
