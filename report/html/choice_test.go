package html

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"netdelta/insight"
	"netdelta/report/browsertest"
	"netdelta/report/words"
	"netdelta/result"
)

// testOtherwise: a ranking is shown in differences, in values, and against another network, as the record has it; the address keeps it.
func testOtherwise(t *testing.T, b *browsertest.Browser) {
	opened(t, b)
	rows := func() []string {
		return visible(b, ".ranking tbody tr:not(.heading)", "[1, 3, 4, 5].map((i) => (e.cells[i].querySelector('b') || e.cells[i]).textContent).join('; ')")
	}
	says := func() string { return browsertest.Ask[string](b, `document.getElementById('bar-says').textContent`) }
	first := rows()
	press(b, `[data-as="added"]`)
	if got := rows(); len(got) != len(first) || !strings.Contains(got[2], "µs; [+") || !strings.Contains(says(), "difference from host") {
		t.Errorf("as differences stand %q, and the page says %q", got, says())
	}
	press(b, `[data-as="value"]`)
	if got := rows(); len(got) != len(first)+1 || !strings.HasPrefix(got[0], "host; ") || !strings.Contains(says(), "intervals of differences") {
		t.Errorf("as values stand %q, and the page says %q", got, says())
	}
	run, _ := usual().run(t)
	var part insight.Part
	for _, p := range insight.Parts(run) {
		if words.Title(p.Setting) == "tcp-rr, 300B, across nodes" {
			part = p
		}
	}
	press(b, `[data-as="change"]`)
	browsertest.Ask[bool](b, `(() => { const s = document.getElementById('against'); s.value = 'vxlan'; s.dispatchEvent(new Event('change')); return true; })()`)
	var want []string
	for _, d := range insight.DemonstrationsLast(part.Against("vxlan")) {
		want = append(want, insight.Name(d.Network, d.Path)+"; "+precise(d.Ratio, d)+"%; ["+precise(*d.RatioLow, d)+", "+precise(*d.RatioHigh, d)+"]")
	}
	got := rows()
	if len(got) != len(want) || len(got) != 6 || !slices.ContainsFunc(got, func(row string) bool { return strings.HasPrefix(row, "host; -") }) {
		t.Fatalf("against vxlan stand %q, the record has %q", got, want)
	}
	for i := range got {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("against vxlan stands %q, the record has %q", got[i], want[i])
		}
	}
	if !strings.Contains(says(), "held directly against it") {
		t.Errorf("against vxlan the page says %q", says())
	}
	if last := visible(b, ".ranking tbody + tbody tr", "e.cells.length == 1 ? e.textContent : e.querySelector('b').textContent"); len(last) != 2 || last[1] != "sockmap" {
		t.Errorf("against vxlan %q stand last, want the heading of demonstrations and sockmap", last)
	}
	for _, w := range inspect(t, b).Wrong {
		t.Errorf("against vxlan: %s", w)
	}
	press(b, `[data-as="added"]`)
	if !strings.Contains(says(), "in percent alone") {
		t.Errorf("of differences against vxlan, which the record lacks, the page says %q", says())
	}
	b.Do(chromedp.Navigate("about:blank"), chromedp.Navigate(browsertest.Ask[string](b, `location.href`)), chromedp.WaitReady(chromedp.CSS(`html[data-ready="true"]`)))
	if again := rows(); !slices.Equal(again, got) {
		t.Errorf("after the page was loaded again stand %q, want %q", again, got)
	}
	b.Accessible("#ranking")
	b.Quiet()
}

// testRequestSliders: for any request that the reader chooses, the page says what show --request says.
func testRequestSliders(t *testing.T, b *browsertest.Browser) {
	run, trials := usual().run(t)
	b.Open(written(t, run, trials))
	for _, c := range []struct {
		at, calls string
		took      float64
	}{{"0", "1", 1e5}, {"2", "100", 5e5}, {"4", "8", 2e6}, {"7", "33", 2e7}, {"15", "57", 1e10}} {
		browsertest.Ask[bool](b, `(() => { for (const [id, v] of [['took', '`+c.at+`'], ['calls', '`+c.calls+`']]) {
			const s = document.getElementById(id); s.value = v; s.dispatchEvent(new Event('input'));
		} return true; })()`)
		got := visible(b, "#matters tbody tr", "[...e.cells].map((c) => c.textContent.replaceAll('\u00a0', ' ')).join('; ') + '; ' + e.className.slice(2)")
		var calls int
		if err := json.Unmarshal([]byte(c.calls), &calls); err != nil {
			t.Fatal(err)
		}
		var want []string
		for _, s := range (insight.Request{Took: c.took, Calls: calls}).Shares(run) {
			l := words.Request(s, run.Margin)
			want = append(want, strings.Join([]string{l.Name, l.Added, l.Share, l.Verdict, l.Class}, "; "))
		}
		if len(want) == 0 || !slices.Equal(got, want) {
			t.Errorf("for %s calls in %v ns the page says\n%q, show says\n%q", c.calls, c.took, got, want)
		}
	}
	if at := browsertest.Ask[string](b, `location.hash`); at != "#?request=10s&calls=57" {
		t.Errorf("the address keeps %q", at)
	}
	b.Quiet()
}

// goals has one of each verdict.
func goals() []result.Goal {
	return []result.Goal{
		{Goal: "vxlan.p50 < +20%", Verdict: result.GoalFail, Measured: "vxlan +41%"}, {Goal: "bridge.p50 < +90%", Verdict: result.GoalPass, Measured: "bridge +14%"},
		{Goal: "macvlan.p50 < +1%", Verdict: result.GoalUnknown, Measured: "too few builds for an interval"},
	}
}

// testGoalsOnPage: what was asked of a run stands on its page, with the answer.
func testGoalsOnPage(t *testing.T, b *browsertest.Browser) {
	run, trials := usual().run(t)
	run.Goals = goals()
	b.Open(written(t, run, trials))
	got := visible(b, ".goals li", "e.textContent.trim()")
	if want := []string{"FAIL vxlan.p50 < +20% vxlan +41%", "PASS bridge.p50 < +90% bridge +14%", "UNKNOWN macvlan.p50 < +1% too few builds for an interval"}; !slices.Equal(got, want) {
		t.Errorf("the goals are %q, want %q", got, want)
	}
}
