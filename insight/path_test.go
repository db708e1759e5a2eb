package insight_test

import (
	"strings"
	"testing"

	"netdelta/insight"
	"netdelta/result"
)

// astray marks a trial as misrouted.
func astray(t *result.Trial) {
	t.Path = &result.Path{
		Findings: []string{"node0/eth1 carried 98% of the bytes; the plan says node0/eth0"},
		Hops:     []result.PathHop{{Device: "node0/eth0", Sends: true}, {Device: "node1/eth0"}},
	}
}

func TestMisroutedTrialsEnterNoDelta(t *testing.T) {
	w := usual()
	trials := w.trials(t)
	clean, _, _ := insight.Deltas(w.cells(), trials, insight.Options{})
	spoiled := 0
	for i := range trials {
		if trials[i].Cell == "vxlan" && trials[i].Build < 2 || trials[i].Cell == "host" && trials[i].Build == 5 {
			astray(&trials[i])
			spoiled++
			for k := range trials[i].Bursts.P50 {
				trials[i].Bursts.P50[k] *= 100 // would be seen in any delta that it entered
			}
		}
	}
	deltas, _, checks := deltasOf(w.cells(), trials, insight.Options{})
	if len(deltas) != len(clean) {
		t.Fatalf("%d deltas, %d without misrouted trials", len(deltas), len(clean))
	}
	for _, d := range deltas {
		if d.Ratio > 2 {
			t.Errorf("%s of %s is %.2f: a misrouted trial is in it", d.Metric, d.Network, d.Ratio)
		}
		if d.Network == "vxlan" && (d.Excluded[insight.Misrouted] != 2 || d.Blocks != w.builds-2) {
			t.Errorf("vxlan has %d builds and leaves out %v, want %d and 2 misrouted", d.Blocks, d.Excluded, w.builds-2)
		}
	}
	named := 0
	for _, c := range checks {
		if c.Check == insight.CheckPath && !c.OK && strings.Contains(c.Observed, "node0/eth1") && c.Expected == "node0/eth0 > node1/eth0" {
			named++
		}
	}
	if named != spoiled {
		t.Errorf("%d of %d misrouted trials are named", named, spoiled)
	}
}

// TestPathsWithoutAServer: why nothing could be proved is told by what was measured.
func TestPathsWithoutAServer(t *testing.T) {
	for want, p := range map[string]result.Params{insight.Unproved: {}, insight.External: {Target: "http://web/"}, insight.Mounted: {StorageClass: "fast"}} {
		proofs := insight.Paths([]result.Cell{{ID: "c", Network: "pod", Params: p}}, []result.Trial{{Cell: "c"}})
		if len(proofs) != 1 || proofs[0].Proved != 0 || len(proofs[0].Weak) != 1 || proofs[0].Weak[0] != want {
			t.Errorf("got %+v, want %q", proofs, want)
		}
	}
}

func TestPathsCountWhatIsProved(t *testing.T) {
	w := usual()
	trials := w.trials(t)
	for i := range trials {
		trials[i].Path = &result.Path{OK: true}
		switch {
		case trials[i].Cell == "bridge" && trials[i].Build == 3:
			astray(&trials[i])
		case trials[i].Cell == "vxlan":
			trials[i].Path.Weak = []string{"no packet sample"}
		case trials[i].Cell == "macvlan":
			trials[i].Path = nil
		}
	}
	for _, p := range insight.Paths(w.cells(), trials) {
		want := result.PathProof{Trials: w.builds, Proved: w.builds}
		weak := ""
		switch p.Network {
		case "host":
			want.Trials, want.Proved = 2*w.builds, 2*w.builds // the A/A control's too
		case "bridge":
			want.Proved--
		case "vxlan":
			weak = "no packet sample"
		case "macvlan":
			want.Proved, weak = 0, insight.Unproved
		}
		if p.Trials != want.Trials || p.Proved != want.Proved || strings.Join(p.Weak, "|") != weak {
			t.Errorf("%s: %d of %d proved, weak %q; want %d of %d, %q", p.Network, p.Proved, p.Trials, p.Weak, want.Proved, want.Trials, weak)
		}
		if p.Seen != nil && !p.Seen.OK {
			t.Errorf("%s: shows a misrouted trial though others are proved", p.Network)
		}
	}
}
