package html

import (
	"context"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"netdelta/report/browsertest"
	"netdelta/result"
	"netdelta/unit"
)

// inspection is what testdata/inspect.js finds.
type inspection struct {
	Wrong []string       `json:"wrong"`
	Count map[string]int `json:"count"`
}

// inspect looks at the page as it is drawn now.
func inspect(t *testing.T, b *browsertest.Browser) inspection {
	t.Helper()
	script, err := os.ReadFile("testdata/inspect.js")
	if err != nil {
		t.Fatal(err)
	}
	return browsertest.Ask[inspection](b, string(script))
}

// unfold opens all that is folded, and waits until the page's script has filled it.
func unfold(b *browsertest.Browser) {
	browsertest.Ask[bool](b, `new Promise((done) => {
		document.querySelectorAll('details').forEach((d) => { d.open = true; });
		requestAnimationFrame(() => requestAnimationFrame(() => done(true)));
	})`, chromedp.EvalAwaitPromise)
}

// views shows the page in all windows and colour schemes in which it must be good. It is not loaded again: only the style depends on them.
func views(b *browsertest.Browser, f func(width int64, scheme string)) {
	for _, width := range []int64{400, 760, 1400} {
		for _, scheme := range []string{"light", "dark"} {
			b.View(width, 900, scheme)
			f(width, scheme)
		}
	}
}

// testDrawn looks at the page of a run with something of everything, on a phone and on a desk, by day and by night.
func testDrawn(t *testing.T, b *browsertest.Browser) {
	run, trials := usual().run(t)
	trials = spoil(&run, trials)
	b.Open(written(t, run, trials))
	unfold(b)
	views(b, func(width int64, scheme string) {
		found := inspect(t, b)
		for _, w := range found.Wrong {
			t.Errorf("at %d px, %s: %s", width, scheme, w)
		}
		for kind, least := range map[string]int{"forest row": 24, "axis": 4, "chart": 3 + 2*4, "drawing of a way": 10, "bar": 20} {
			if found.Count[kind] < least {
				t.Errorf("at %d px, %s: %d of kind %q are drawn, want at least %d", width, scheme, found.Count[kind], kind, least)
			}
		}
		labels := browsertest.Ask[[]string](b, `[...document.querySelectorAll('.plot:not([data-kind="moments"])')].filter((p) => p.checkVisibility()).flatMap((p) => {
			const [across, up] = [false, true].map((end) => [...p.querySelectorAll('.al')].filter((e) => e.checkVisibility() && e.textContent && (e.getAttribute('text-anchor') === 'end' && e.getAttribute('x') === '-8') === end).length);
			return across < 4 || up < 2 ? [across + ' below, ' + up + ' beside'] : []; })`)
		axes := browsertest.Ask[int](b, `[...document.querySelectorAll('.ranking:not([hidden]) .axis')].filter((e) => e.checkVisibility() && e.getBoundingClientRect().width > 280).length`)
		if len(labels) > 0 || axes != 1 {
			t.Errorf("at %d px, %s: these charts have too few values or titles at their axes: %q; the ranking shows %d axes", width, scheme, labels, axes)
		}
		dark := browsertest.Ask[bool](b, `getComputedStyle(document.body).backgroundColor.match(/\d+/g).every((v) => v < 60)`)
		if dark != (scheme == "dark") {
			t.Errorf("at %d px, %s: the page is dark: %t", width, scheme, dark)
		}
	})
	b.Quiet()
}

// testNarrowFont looks at the same page in a narrow font.
func testNarrowFont(t *testing.T, b *browsertest.Browser) {
	run, trials := usual().run(t)
	trials = spoil(&run, trials)
	b.Font(browsertest.NarrowFont)
	b.Open(written(t, run, trials))
	unfold(b)
	for _, width := range []int64{400, 760, 1400} {
		b.View(width, 900, "light")
		for _, w := range inspect(t, b).Wrong {
			t.Errorf("at %d px: %s", width, w)
		}
	}
}

// testOddRunsDrawn holds that a run that lacks most of what a page shows makes a page that is sound.
func testOddRunsDrawn(t *testing.T, b *browsertest.Browser) {
	for name, c := range odd(t) {
		b.Open(written(t, c.run, c.trials))
		for _, width := range []int64{390, 1440} {
			b.View(width, 900, "light")
			for _, w := range inspect(t, b).Wrong {
				t.Errorf("%s, at %d px: %s", name, width, w)
			}
		}
	}
	b.Quiet()
}

// testHostilePage holds that what a study says is never run, whatever it says.
func testHostilePage(t *testing.T, b *browsertest.Browser) {
	for _, sparing := range []bool{true, false} {
		run, trials := hostile(t, sparing)
		page := written(t, run, trials, WithStudy([]byte("study: "+evil)))
		b.View(1440, 900, "light")
		b.Open(page)
		if hit := browsertest.Ask[string](b, `String(window.hit)`); hit != "undefined" {
			t.Errorf("a planted script ran and left %s", hit)
		}
		if n := browsertest.Ask[int](b, `document.querySelectorAll('img, iframe, object, embed, link, [autofocus], [onfocus], [onerror], script + script').length`); n > 0 {
			t.Errorf("%d planted elements are in the page", n)
		}
		if n := browsertest.Ask[int](b, `document.querySelectorAll('script:not(#pictures)').length`); n != 1 {
			t.Errorf("the page has %d scripts, want 1", n)
		}
		for _, w := range inspect(t, b).Wrong {
			if strings.Contains(w, "in a window") || strings.HasSuffix(w, "the window") {
				t.Errorf("long names: %s", w)
			}
		}
		if !strings.Contains(browsertest.Ask[string](b, `document.querySelector('h1').textContent`), "<img src=x") {
			t.Error("the text itself is missing")
		}
	}
	b.Quiet()
}

// TestPolicy holds the second line of defence: markup that got through in spite of all would neither run nor be fetched.
func TestPolicy(t *testing.T) {
	run, trials := small(t)
	page := written(t, run, trials)
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	planted := `<script>window.hit=1</script><p id="planted" style="color:red" onclick="window.hit=2">x</p><img src="http://127.0.0.1:1/x"></main>`
	if err := os.WriteFile(page, []byte(strings.Replace(string(text), "</main>", planted, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	b := browsertest.Start(t)
	b.View(1440, 900, "light")
	b.Open(page)
	b.Do(chromedp.Click(chromedp.CSS("#planted")))
	if hit := browsertest.Ask[string](b, `String(window.hit)`); hit != "undefined" {
		t.Errorf("a planted script ran and left %s", hit)
	}
	if n := browsertest.Ask[int](b, `performance.getEntriesByType('resource').filter((r) => r.responseStatus > 0 || r.transferSize > 0).length`); n != 0 {
		t.Errorf("%d planted addresses were fetched", n)
	}
	refused := 0
	for _, c := range b.Complaints() {
		if strings.Contains(c, "Content Security Policy") {
			refused++
		}
	}
	if refused < 4 {
		t.Errorf("the policy refused %d things, want the script, the style, the handler and the image: %q", refused, b.Complaints())
	}
}

// visible lists what a selector finds and can be seen, each by an expression of e.
func visible(b *browsertest.Browser, selector, of string) []string {
	return browsertest.Ask[[]string](b, `[...document.querySelectorAll('`+selector+`')].filter((e) => e.checkVisibility()).map((e) => String(`+of+`))`)
}

// testFilters clicks what can be clicked.
func testFilters(t *testing.T, b *browsertest.Browser) {
	run, trials := usual().run(t)
	page := written(t, run, trials)
	b.View(1440, 900, "light")
	b.Open(page)
	unfold(b)
	click := func(filter, value string) {
		b.Do(chromedp.Click(chromedp.CSS(`[data-filter="` + filter + `"] button[data-value="` + value + `"]`)))
		if on := visible(b, `[data-filter="`+filter+`"] button[aria-pressed="true"]`, `e.dataset.value`); !slices.Equal(on, []string{value}) {
			t.Errorf("after a click on %s of %s, pressed are %q", value, filter, on)
		}
	}
	everything := len(visible(b, ".setting", "e.id"))
	if everything != 4 {
		t.Fatalf("%d settings are shown, want 4", everything)
	}
	click("placement", "cross-node")
	for _, p := range visible(b, "[data-placement]", "e.dataset.placement") {
		if p != "cross-node" {
			t.Errorf("%s is shown though only cross-node was asked for", p)
		}
	}
	if n := len(visible(b, ".setting", "e.id")); n != 3 {
		t.Errorf("%d settings across nodes are shown, want 3", n)
	}
	click("load", "tcp-rr")
	if got := visible(b, ".setting", "e.dataset.load + e.dataset.placement"); !slices.Equal(got, []string{"tcp-rrcross-node"}) {
		t.Errorf("both filters leave %q", got)
	}
	if n := len(visible(b, ".fig", "e.tagName")); n != 3 {
		t.Errorf("both filters leave %d charts, want one each of latency, drift and CPU", n)
	}
	click("load", "")
	click("placement", "")
	click("metric", "p99.9")
	if got := visible(b, ".forest", "e.dataset.metric"); !slices.Equal(got, []string{"p99.9", "p99.9", "p99.9"}) {
		t.Errorf("the tables shown are of %q, want p99.9 of the three settings that have it", got)
	}
	if got := visible(b, ".nometric", "e.closest('.setting').dataset.load"); !slices.Equal(got, []string{"tcp-stream"}) {
		t.Errorf("%q say that they lack the metric, want tcp-stream", got)
	}
	if n := len(visible(b, ".says", "e.textContent")); n != 0 {
		t.Errorf("%d sentences about the headline are shown with another metric", n)
	}
	click("metric", "")
	if n := len(visible(b, ".says", "e.textContent")); n != 4 {
		t.Errorf("%d sentences about the headline are shown with it, want 4", n)
	}
	if got := visible(b, ".forest", "e.dataset.metric"); !slices.Equal(got, []string{"p50", "p50", "p50", "throughput"}) {
		t.Errorf("the tables shown are of %q, want the headlines", got)
	}
	for _, want := range []string{"dark", "light"} {
		b.Do(chromedp.Click(chromedp.CSS("#theme")))
		if got := browsertest.Ask[string](b, `document.documentElement.dataset.theme`); got != want {
			t.Errorf("the theme is %s, want %s", got, want)
		}
	}
	b.Quiet()
}

// testReadouts points at charts, by mouse and by keyboard.
func testReadouts(t *testing.T, b *browsertest.Browser) {
	run, trials := usual().run(t)
	page := written(t, run, trials)
	b.View(1440, 900, "light")
	b.Open(page)
	unfold(b)
	if n := browsertest.Ask[int](b, `document.querySelectorAll('.plot[data-kind="quantiles"] .ln').length`); n != 3*8 {
		t.Errorf("%d curves of latency, want 8 in each of 3 settings", n)
	}
	point := func(selector string, share string) []string {
		return browsertest.Ask[[]string](b, `(() => {
			const plot = document.querySelector('`+selector+`');
			plot.scrollIntoView({block: 'center'});
			const box = plot.getBoundingClientRect();
			plot.dispatchEvent(new PointerEvent('pointermove', {clientX: box.left + `+share+` * box.width, clientY: box.top + 20}));
			const readout = document.getElementById('readout');
			return readout.hidden ? [] : [...readout.children].map((e) => e.textContent);
		})()`)
	}
	rows := point(`.plot[data-kind="quantiles"]`, "0.001")
	if len(rows) != 7 || rows[0] != "fastest" {
		t.Errorf("the readout at the left end says %q, want a heading and six curves", rows)
	}
	for _, r := range rows[1:] {
		if !strings.HasSuffix(r, " µs") {
			t.Errorf("a latency reads %q", r)
		}
	}
	rows = point(`.plot[data-kind="changes"]`, "0.5")
	if len(rows) != 7 || !strings.HasSuffix(rows[0], "s into the run") || !slices.ContainsFunc(rows, func(r string) bool { return strings.HasPrefix(r, "vxlan+4") }) {
		t.Errorf("the readout over the run says %q, want 6 courses, vxlan at some +40%%", rows)
	}
	chooseCurves(t, b)
	keys := browsertest.Ask[[]string](b, `(() => {
		const plot = document.querySelector('.plot[data-kind="moments"]'), readout = document.getElementById('readout');
		readout.hidden = true;
		plot.focus();
		const press = (key) => { plot.dispatchEvent(new KeyboardEvent('keydown', {key, cancelable: true})); return String(readout.hidden); };
		return [String(document.activeElement === plot), press('ArrowRight'), press('Escape')];
	})()`)
	if !slices.Equal(keys, []string{"true", "false", "true"}) {
		t.Errorf("focus, arrow and escape give %q", keys)
	}
	b.Quiet()
}

// chooseCurves holds that a chart never has more than six curves, each with its label, and that its reader chooses which.
func chooseCurves(t *testing.T, b *browsertest.Browser) {
	t.Helper()
	const chart = `#latency .fig:first-child .plot[data-kind="quantiles"] `
	curves := func() []string {
		names := visible(b, chart+".ln", "e.dataset.n")
		if labels := visible(b, chart+".end .lab", "e.parentElement.dataset.n"); len(names) > 6 || len(labels) != len(names) {
			t.Errorf("the curves %q have the labels %q, want at most six with as many labels", names, labels)
		}
		slices.Sort(names)
		return names
	}
	if got := curves(); !slices.Equal(got, []string{"bridge", "bridge-nat (nodeport)", "host", "host again", "macvlan", "routed"}) {
		t.Errorf("drawn at first are %q, want host twice, the cheapest, the dearest, and two between them", got)
	}
	click := func(name string) {
		browsertest.Ask[bool](b, `([...document.querySelector('#latency .fig:first-child .curves').children].find((e) => e.textContent === '`+name+`').click(), true)`)
	}
	click("sockmap")
	if got := curves(); len(got) != 6 || !slices.Contains(got, "sockmap") || !slices.Contains(got, "host") {
		t.Errorf("after sockmap was chosen %q are drawn", got)
	}
	click("sockmap")
	if got := curves(); len(got) != 5 || slices.Contains(got, "sockmap") {
		t.Errorf("after sockmap was chosen again %q are drawn", got)
	}
	click("vxlan")
	if pressed := visible(b, "#latency .fig:first-child .curves [aria-pressed=true]", "e.textContent"); len(pressed) != 6 || !slices.Contains(pressed, "vxlan") {
		t.Errorf("%q are pressed, want six with vxlan", pressed)
	}
}

// testReadWithoutScripts holds that nothing but comfort is missing where scripts don't run, in what is folded too.
func testReadWithoutScripts(t *testing.T, b *browsertest.Browser) {
	w := usual()
	for message := range 6 {
		for _, p := range []result.Placement{result.SameNode, result.CrossNode} {
			w.loads = append(w.loads, result.Setting{Workload: "udp-rr", Params: result.Params{Message: unit.Bytes(message + 1)}, Placement: p})
		}
	}
	w.samples, w.rounds = 100, 6
	run, trials := w.run(t)
	page := written(t, run, trials)
	b.View(1440, 900, "light")
	b.Do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
		return err
	}))
	address := url.URL{Scheme: "file", Path: page}
	b.Do(chromedp.Navigate(address.String()))
	if ready := browsertest.Ask[bool](b, `'ready' in document.documentElement.dataset`); ready {
		t.Fatal("the script ran: this test looks at the wrong page")
	}
	browsertest.Ask[bool](b, `document.querySelectorAll('details').forEach((d) => { d.open = true; }), true`)
	if n, want := len(visible(b, ".fp .pt", "e.tagName")), len(w.loads)*(1+len(w.networks)); n != want {
		t.Errorf("%d rows are drawn, want %d", n, want)
	}
	if n, want := len(visible(b, ".plot", "e.tagName")), len(w.loads)*3-1; n != want {
		t.Errorf("%d charts are drawn, want %d: of latency and twice over time, for each setting but the stream", n, want)
	}
	if n := len(visible(b, "button, input", "e.tagName")); n != 0 {
		t.Errorf("%d things to click are shown that can do nothing", n)
	}
	for _, w := range inspect(t, b).Wrong {
		t.Error(w)
	}
}
