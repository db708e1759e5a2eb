package insight_test

import (
	"math"
	"testing"

	"netdelta/insight"
	"netdelta/report/words"
	"netdelta/result"
)

// counted is a run of instructions: each network's true ratio moved by what its seeds say.
func counted(ratios map[string][]float64) insight.Measured {
	w := usual()
	w.networks = nil
	var trials result.List
	m := insight.Measured{Run: result.Run{
		Run: "counted", Study: "latency", Confidence: 0.95, Margin: result.ExactMargin, Ended: "builds",
		Exact: &result.Exact{Seeds: []uint64{1, 2, 3}, PerInstruction: 2, Transactions: 400},
	}}
	for _, n := range []string{"bridge", "macvlan", "vxlan", "routed"} {
		if ratios[n] != nil {
			w.networks = append(w.networks, n)
		}
	}
	m.Run.Cells = w.cells()
	for _, c := range m.Run.Cells {
		values := ratios[c.Network]
		if c.Role == result.RoleControl {
			values = ratios["twin"]
		}
		if values == nil {
			values = []float64{1, 1, 1}
		}
		for build, ratio := range values {
			x := 60_000 * ratio
			trials = append(trials, result.Trial{
				Schema: result.Schema, Cell: c.ID, Role: c.Role, Build: build, Transactions: 400, Sent: 400,
				Bursts: result.Bursts{Round: []int{0}, Start: []int64{0}, Duration: []int64{1}, P50: []float64{x}, Disturbed: []string{""}},
				Exact:  &result.ExactTrial{Seed: uint64(build + 1), Request: 0.55 * x / 2, Response: 0.45 * x / 2, RoundTrip: x / 2},
			})
		}
	}
	m.Trials = insight.Summarize(trials)
	return m
}

func TestExactIntervalIsTheRangeOverSeeds(t *testing.T) {
	m := counted(map[string][]float64{
		"bridge": {1.10, 1.12, 1.11}, "macvlan": {1.0002, 1.0005, 0.9997}, "vxlan": {1.01, 1.01, 1.01}, "routed": {0.998, 1.004, 1.003},
		"twin": {1.0001, 0.9999, 1},
	})
	words.NewJudge(nil).ConcludeFrom(&m.Run, m.Trials)
	for network, want := range map[string]struct {
		low, high float64
		verdict   string
	}{
		"bridge":  {1.10, 1.12, "slower"},
		"macvlan": {0.9997, 1.0005, "same"},
		"vxlan":   {1.01, 1.01, "slower"},
		"routed":  {0.998, 1.004, "unresolved"},
	} {
		d := find(t, m.Run.Deltas, network, "p50")
		if d.RatioLow == nil || d.RatioHigh == nil {
			t.Errorf("%s has no interval: %+v", network, d)
			continue
		}
		near(t, network+" low", *d.RatioLow, want.low, 2e-4) // half of what the A/A control differs by is in the baseline
		near(t, network+" high", *d.RatioHigh, want.high, 2e-4)
		if d.Verdict != want.verdict || !d.Headline {
			t.Errorf("%s is %s, want %s: %+v", network, d.Verdict, want.verdict, d)
		}
		if len(d.Warnings) > 0 {
			t.Errorf("%s warns of %v", network, d.Warnings)
		}
	}
	request := find(t, m.Run.Deltas, "bridge", "request")
	if request.Unit != "instructions" || math.Abs(request.BaselineValue-16500) > 5 || request.Headline {
		t.Errorf("%+v", request)
	}
	if len(m.Run.Null) == 0 || m.Run.Null[0].Verdict != "same" {
		t.Errorf("the null check: %+v", m.Run.Null)
	}
}

// Two seeds make no range.
func TestExactNeedsThreeSeeds(t *testing.T) {
	m := counted(map[string][]float64{"bridge": {1.10, 1.12}})
	words.NewJudge(nil).ConcludeFrom(&m.Run, m.Trials)
	if d := find(t, m.Run.Deltas, "bridge", "p50"); d.RatioLow != nil || d.Verdict != "unresolved" || d.Need != 3 {
		t.Errorf("%+v", d)
	}
}

// A change of half a percent is far beyond the margin of exact runs, one of half a tenth within it; one that the seeds leave
// open is neither.
func TestExactComparisonFindsHalfAPercent(t *testing.T) {
	before := counted(map[string][]float64{"bridge": {1.1, 1.1002, 1.1001}, "macvlan": {1.01, 1.01, 1.01}, "vxlan": {1.3, 1.301, 1.299}, "routed": {1.2, 1.2, 1.2}})
	after := counted(map[string][]float64{"bridge": {1.1055, 1.1057, 1.1056}, "macvlan": {1.0105, 1.0105, 1.0105}, "vxlan": {1.302, 1.303, 1.301}, "routed": {1.194, 1.194, 1.194}})
	c := words.NewJudge(nil).Compare(before, after, insight.Comparing{})
	if !c.Exact || c.Margin != result.ExactMargin || c.Verdict != "regressed" {
		t.Errorf("exact %v, margin %v, verdict %s", c.Exact, c.Margin, c.Verdict)
	}
	for network, want := range map[string]string{"bridge": "regressed", "macvlan": "same", "vxlan": "unresolved", "routed": "improved"} {
		if got := changeOf(t, c, network, "p50").Verdict; got != want {
			t.Errorf("%s: %s, want %s", network, got, want)
		}
	}
	if same := words.NewJudge(nil).Compare(before, before, insight.Comparing{}); same.Verdict != "unresolved" && same.Verdict != "same" {
		t.Errorf("a run against itself: %s", same.Verdict)
	}
}

// Claims of which seeds agree are judged; those in microseconds or of processor time are not asked of instructions.
func TestExactClaims(t *testing.T) {
	m := counted(map[string][]float64{"bridge": {1.10, 1.12, 1.11}, "macvlan": {1.02, 1.03, 1.02}, "vxlan": {1.11, 1.13, 1.105}})
	for id, expect := range map[string]string{
		"confirmed": "p50 of macvlan below bridge, vxlan", "contradicted": "p50 of vxlan below macvlan", "unresolved": "p50 of bridge above vxlan",
		"not-tested": "p50 of bridge within 10us of macvlan", "cpu": "cpu of bridge within 10% of macvlan",
	} {
		m.Run.Claims = append(m.Run.Claims, result.Claim{ID: id, Expect: expect})
	}
	words.NewJudge(nil).ConcludeFrom(&m.Run, m.Trials)
	for _, c := range m.Run.Claims {
		want := c.ID
		if c.ID == "cpu" {
			want = insight.NotTested
		}
		if c.Verdict != want {
			t.Errorf("%s: %s: %s", c.Expect, c.Verdict, c.Measured)
		}
	}
}
