package html

import (
	"fmt"
	"strings"
	"testing"

	"netdelta/report/browsertest"
	"netdelta/result"
)

// crowd is a run of many networks, one of which costs many times as much as the others, under conditions.
func crowd() world {
	w := usual()
	for i := range 17 {
		w.networks = append(w.networks, fmt.Sprintf("network-%02d", i))
	}
	w.loads = nil
	for _, c := range []result.Conditions{{}, {Policy: "nftables", PolicyRules: 1000}, {LinkCount: 4, BondHash: "layer3+4"}} {
		for _, p := range []result.Placement{result.SameNode, result.CrossNode} {
			w.loads = append(w.loads, result.Setting{Workload: "tcp-rr", Params: result.Params{Message: 300, Conditions: c.Plain()}, Placement: p})
		}
	}
	w.builds, w.rounds, w.samples = 6, 4, 0
	return w
}

// testCrowdDrawn looks at the page of many networks under conditions: it is sound on a phone and on a desk, each effect has its
// table, and what lies far beyond all others is cut and marked.
func testCrowdDrawn(t *testing.T, b *browsertest.Browser) {
	run, trials := crowd().run(t)
	if len(run.Effects) == 0 {
		t.Fatal("the run has no effects")
	}
	for i := range run.Deltas {
		if d := &run.Deltas[i]; d.Network == "network-03" && d.Ratio > 0 {
			d.Ratio, *d.RatioLow, *d.RatioHigh = 9, 8.5, 9.6
		}
	}
	text := text(t, run, trials)
	for _, want := range []string{
		"Policy from none to nftables:1000", "Links from 1 link to 4x802.3ad,layer3+4", "tcp-rr, 300B, policy nftables, 1000 rules", `href="#effects"`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if n := strings.Count(text, `class="effect"`); n != 4 {
		t.Errorf("the page has %d tables of effects, want one for each of two steps in each of two placements", n)
	}
	b.Open(written(t, run, trials))
	unfold(b)
	for width, scheme := range map[int64]string{400: "light", 760: "dark", 1400: "light"} {
		b.View(width, 900, scheme)
		found := inspect(t, b)
		for _, w := range found.Wrong {
			t.Errorf("at %d px, %s: %s", width, scheme, w)
		}
		// Of the networks that are not cut, the dots are spread over the plot, and the one that is has arrows in place of a dot.
		cut := browsertest.Ask[int](b, `[...document.querySelectorAll('#deltas .forest:not([hidden]) tr')].filter((r) => r.querySelector('th').textContent === 'network-03' && !r.querySelector('circle') && r.querySelectorAll('.go').length === 2).length`)
		if cut != 6 {
			t.Errorf("at %d px, %s: %d bars are cut, want that of one network in each of 6 settings", width, scheme, cut)
		}
	}
	b.Quiet()
}
