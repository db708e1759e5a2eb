package terminal

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"netdelta/insight"
	"netdelta/internal/golden"
	"netdelta/internal/property"
	"netdelta/report/ui"
	"netdelta/result"
)

// claimed is a run with a claim of each verdict.
func claimed() result.Run {
	return result.Run{Study: "latency", Ended: "budget", Claims: []result.Claim{
		{
			ID: "macvlan-closest", Says: "macvlan is the virtualised network closest to bare metal, on one node and across nodes",
			Published: "closest on one node and across", Verdict: insight.Confirmed,
			Measured: "on one node: macvlan +2.5% [2.0, 2.9], next bridge +16.8% [16.1, 17.6] (udp-rr, 300B); across nodes: macvlan +3.1% [2.2, 4.0], " +
				"next routed +21% [20, 23] (tcp-rr, 300B). Not tested: ipip, ovs and udp-tun (not built by netdelta yet)",
		},
		{
			ID: "cross-node-close", Says: "across nodes all networks lie within 50 us of each other", Published: "within 50 us",
			Verdict: insight.Contradicted, Measured: "across nodes: vxlan +71.0 µs [65.2, 76.8] against host (tcp-rr, 64KiB; 2 of 180 comparisons)",
		},
		{ID: "x", Says: "nobody's figure", Verdict: insight.Undecided, Measured: "on one node: bridge +1.0% (3 of 6 builds) against host"},
		{
			ID: "tuned-hash", Says: "a tuned hash writes more over the bond", Published: "up to +40% IOPS", Differs: "streams stand for storage",
			Verdict: insight.NotComparable, Measured: "across nodes: host +100% [100, 101]. What differs: streams stand for storage",
		},
		{ID: "sriov-same-node", Says: "SR-IOV is slow", Verdict: insight.NotTested, Measured: "not built by netdelta yet: sriov"},
		{ID: "host-on-par", Says: "host is on par", Verdict: insight.NotTested, Measured: "needs a bare-metal baseline: metal"},
		{ID: "userspace-tunnel-costs", Says: "a tunnel costs", Verdict: insight.NotTested, Measured: "not built by netdelta yet: udp-tun"},
		{ID: "unjudged", Says: "nobody looked", Verdict: insight.NotTested},
	}}
}

func TestClaimsGolden(t *testing.T) {
	for name, terminal := range map[string]ui.Terminal{
		"claims-60":        {Width: 60, Unicode: true},
		"claims-80-ascii":  {Width: 80},
		"claims-120":       {Width: 120, Unicode: true},
		"claims-80-colour": {Width: 80, Unicode: true, Colour: true},
	} {
		var got bytes.Buffer
		if err := Write(&got, claimed(), View{Terminal: terminal, Verbose: true}); err != nil {
			t.Fatal(err)
		}
		_, claims, found := strings.Cut(got.String(), "What was claimed")
		if !found {
			t.Fatalf("no claims in\n%s", &got)
		}
		golden.Check(t, filepath.Join("testdata", name+".txt"), claims)
	}
}

// TestClaimsFit holds that claims keep to the width as columns, and that no text of theirs reaches the terminal with its
// control characters.
func TestClaimsFit(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.OneOf(rapid.RuneFrom([]rune("ab c: ;\x1b\r\u009b\u202e\nµ世")), rapid.Rune()))
		var run result.Run
		for range rapid.IntRange(1, 4).Draw(t, "claims") {
			run.Claims = append(run.Claims, result.Claim{
				ID: text.Draw(t, "id"), Says: text.Draw(t, "says"), Published: text.Draw(t, "published"), Measured: text.Draw(t, "measured"),
				Verdict: rapid.OneOf(text, rapid.SampledFrom([]string{insight.Confirmed, insight.Contradicted, insight.Undecided})).Draw(t, "verdict"),
			})
		}
		run.Claims = append(run.Claims, result.Claim{ID: text.Draw(t, "id"), Measured: text.Draw(t, "measured"), Verdict: insight.NotTested})
		terminal := ui.Terminal{Width: rapid.IntRange(claimsWide, 200).Draw(t, "width"), Unicode: rapid.Bool().Draw(t, "unicode")}
		var out bytes.Buffer
		if err := Write(&out, run, View{Terminal: terminal, Verbose: true}); err != nil {
			t.Fatal(err)
		}
		if i := strings.IndexAny(out.String(), "\x1b\r\u202e\u009b"); i >= 0 {
			t.Fatalf("a control character got through: %q", out.String())
		}
		_, claims, _ := strings.Cut(out.String(), "What was claimed")
		claims, _, _ = strings.Cut(claims, "not tested")
		for line := range strings.Lines(claims) {
			if got := ui.Columns(strings.TrimSuffix(line, "\n")); got > terminal.Width {
				t.Fatalf("%d columns of %d: %q", got, terminal.Width, line)
			}
		}
	})
}
