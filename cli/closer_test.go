package cli

import (
	"testing"
	"time"

	"netdelta/experiment/study"
	"netdelta/result"
	"netdelta/workload/catalogue"
)

// A run looks closer by itself where it has time, on this machine, and where its builds and rounds are not fixed and no look was asked for.
func TestLooksCloser(t *testing.T) {
	long, short := &study.Study{}, &study.Study{}
	long.Design.TimeBudget, short.Design.TimeBudget = time.Minute, 20*time.Second
	lab, cluster := kind{here: true}, kind{}
	for name, c := range map[string]struct {
		k    kind
		o    runOptions
		s    *study.Study
		want bool
	}{
		"a minute in a lab": {lab, runOptions{}, long, true}, "too short": {lab, runOptions{}, short, false},
		"a cluster": {cluster, runOptions{}, long, false}, "fixed builds": {lab, runOptions{builds: 2}, long, false},
		"asked for all hops": {lab, runOptions{hops: true}, long, false}, "counted": {lab, runOptions{exact: true}, long, false},
	} {
		if got := c.k.looksCloser(c.o, c.s); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// The two networks are those that the summary names, in a setting whose requests can be followed.
func TestExtremes(t *testing.T) {
	env := &environment{workloads: catalogue.Workloads()}
	delta := func(network, workload string, ratio float64) result.Delta {
		low, high := ratio-0.01, ratio+0.01
		return result.Delta{
			Cell: network + workload, Network: network, Baseline: "host", Setting: result.Setting{Workload: workload, Placement: result.CrossNode}, Path: "pod", Metric: "p50", Unit: "ns",
			Better: "lower", Headline: true, Judgement: result.Judgement{Verdict: "slower", Ratio: ratio, RatioLow: &low, RatioHigh: &high},
		}
	}
	run := result.Run{Deltas: []result.Delta{
		delta("bridge", "http", 1.2), delta("vxlan", "http", 1.9), delta("bridge", "tcp-rr", 1.1), delta("vxlan", "tcp-rr", 1.4), delta("routed", "tcp-rr", 1.2), delta("routed", "http", 1.3),
	}}
	for _, w := range []string{"http", "tcp-rr"} {
		run.Cells = append(run.Cells, result.Cell{ID: "host" + w, Network: "host", Workload: w, Placement: result.CrossNode, Path: "pod", Role: result.RoleBaseline})
	}
	for _, d := range run.Deltas {
		run.Cells = append(run.Cells, result.Cell{ID: d.Cell, Network: d.Network, Workload: d.Workload, Placement: d.Placement, Path: d.Path, Role: result.RoleCell})
	}
	run.Contrasts = []result.Contrast{{Cell: "bridgehttp", Other: "vxlanhttp", Cheaper: "bridgehttp"}}
	best, worst, found := env.extremes(run)
	if !found || best.ID != "bridgetcp-rr" || worst.ID != "vxlantcp-rr" {
		t.Errorf("looked at are %q and %q (%v), want bridge and vxlan under tcp-rr", best.ID, worst.ID, found)
	}
	run.Deltas = run.Deltas[:2]
	if _, _, found := env.extremes(result.Run{Deltas: run.Deltas[:1]}); found {
		t.Error("of one network there is a best and a worst")
	}
}
