package html

import (
	"context"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	pages "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"netdelta/report/browsertest"
)

// opened has a browser open the page of the usual run.
func opened(t *testing.T, b *browsertest.Browser) {
	t.Helper()
	run, trials := usual().run(t)
	b.View(1400, 900, "light")
	b.Open(written(t, run, trials))
}

// press clicks the first thing that a selector finds.
func press(b *browsertest.Browser, selector string) { b.Do(chromedp.Click(chromedp.CSS(selector))) }

// testRankingFirst: the page opens with the ranking of one setting and the sentence about it; a click shows another with its own, and the
// address keeps it.
func testRankingFirst(t *testing.T, b *browsertest.Browser) {
	opened(t, b)
	shown := func() string { return strings.Join(visible(b, ".ranking", "e.dataset.title"), "; ") }
	if got := shown(); got != "tcp-rr, 300B, across nodes" {
		t.Fatalf("the rankings shown at first are of %q", got)
	}
	sentences := func(where string) []string {
		said := visible(b, ".answer", "e.textContent + (e.matches('.also') ? '' : ' (headline)')")
		if n := strings.Count(strings.Join(said, "; "), "(headline)"); n != 1 || !strings.HasPrefix(said[0], shown()+":") || !strings.HasSuffix(said[0], "(headline)") {
			t.Errorf("%s the page says %q: the first must be the headline, and be about the ranking that is shown", where, said)
		}
		return said
	}
	if said := sentences("at first"); len(said) != 2 || !strings.Contains(said[0], "macvlan costs the least") || !strings.HasPrefix(said[1], "tcp-rr, 300B, on one node:") {
		t.Errorf("at first the page says %q, want a sentence for each placement", said)
	}
	if where := visible(b, ".eyebrow", "e.textContent"); len(where) != 1 || !strings.Contains(where[0], "lab") || !strings.Contains(where[0], "8 processors (Example CPU") {
		t.Errorf("the first screen names the machine as %q", where)
	}
	if last := browsertest.Ask[float64](b, `document.querySelector('.ranking:not([hidden]) tr:last-child').getBoundingClientRect().bottom`); last > 900 {
		t.Errorf("the ranking ends %.0f px down: it is not on the first screen", last)
	}
	if top := browsertest.Ask[float64](b, `[...document.querySelectorAll('h2')].find((e) => e.textContent === 'What to do').getBoundingClientRect().top`); top > 850 {
		t.Errorf("what to do begins %.0f px down: it is not on the first screen", top)
	}
	const cut = `[...document.querySelectorAll('.ranking:not([hidden]) .uses')].filter((all) => [...all.children].some((e) =>
		e.offsetTop < all.offsetTop + all.clientHeight && e.scrollWidth > e.clientWidth + 1)).map((all) => all.textContent).join('; ')`
	if names := browsertest.Ask[string](b, cut); names != "" || len(visible(b, ".uses span", "e.textContent")) < 6 {
		t.Errorf("these names are cut: %s", names)
	}
	groups := visible(b, ".ranking tbody tr", "e.cells.length == 1 ? e.textContent : e.cells[0].textContent + ' ' + e.querySelector('b').textContent")
	if len(groups) != 7 || groups[0] != "A macvlan" || groups[4] != "E bridge-nat (nodeport)" || !strings.HasPrefix(groups[5], "demonstrations") || groups[6] != "F sockmap" {
		t.Errorf("ranked are %q, want five from macvlan to bridge-nat, and sockmap below a heading", groups)
	}
	if n := browsertest.Ask[int](b, `document.querySelectorAll('.ranking:not([hidden]) tbody + tbody .go').length`); n != 2 {
		t.Errorf("sockmap, which is beyond the axis of the others, has %d arrows, want 2", n)
	}
	if open := visible(b, ".advice pre", "e.textContent"); len(open) != 0 {
		t.Errorf("these commands are unfolded on the first screen: %q", open)
	}
	if long := visible(b, ".advice li > details > summary", "e.getClientRects().length && e.clientHeight / parseFloat(getComputedStyle(e).lineHeight)"); len(long) == 0 ||
		len(long) > 3 || slices.ContainsFunc(long, func(lines string) bool { return lines > "3.9" }) {
		t.Errorf("the entries of advice take %q lines each, want three entries of three lines at most", long)
	}
	press(b, `[data-rank="s3"]`)
	if got := shown(); !strings.HasPrefix(got, "tcp-stream") {
		t.Errorf("after the click on the stream's chip the ranking is of %q", got)
	}
	if said := sentences("after the click"); len(said) != 3 {
		t.Errorf("after the click the page says %q, want the stream's sentence and those of the answer", said)
	}
	press(b, `[data-networks] [data-value="vxlan"]`)
	plain := visible(b, ".ranking tbody tr:not(.faded, .heading)", "e.querySelector('b').textContent")
	if !slices.Equal(plain, []string{"vxlan"}) {
		t.Errorf("with vxlan chosen, %q stand out", plain)
	}
	if n := len(visible(b, `[data-n]:not(.faded)`, "e.dataset.n")); n == 0 || n != len(visible(b, `[data-n="vxlan"]`, "e.dataset.n")) {
		t.Errorf("%d curves stand out, want only vxlan's", n)
	}
	b.Do(chromedp.Navigate("about:blank"), chromedp.Navigate(browsertest.Ask[string](b, `location.href`)), chromedp.WaitReady(chromedp.CSS(`html[data-ready="true"]`)))
	if got := shown(); !strings.HasPrefix(got, "tcp-stream") {
		t.Errorf("after the page was loaded again the ranking is of %q: the address did not keep it", got)
	}
	if on := visible(b, `[data-networks] [aria-pressed="true"]`, "e.dataset.value"); !slices.Equal(on, []string{"vxlan"}) {
		t.Errorf("after the page was loaded again %q are chosen, want vxlan", on)
	}
	b.Quiet()
}

// testSorted clicks on heads of columns.
func testSorted(t *testing.T, b *browsertest.Browser) {
	opened(t, b)
	unfold(b)
	names := func() []string { return visible(b, "#s0 .forest tbody th", "e.textContent") }
	press(b, "#s0 .forest th:nth-child(1) .sort")
	if got := names(); got[0] != "host again" || !slices.IsSorted(got[1:]) {
		t.Errorf("sorted by name are %q, want the null check and then the alphabet", got)
	}
	press(b, "#s0 .forest th:nth-child(2) .sort")
	press(b, "#s0 .forest th:nth-child(2) .sort")
	if got := names(); got[1] != "bridge-nat (nodeport)" || got[len(got)-1] != "sockmap" {
		t.Errorf("sorted by change, the dearest first, are %q", got)
	}
	b.Quiet()
}

// TestSavedFiles saves the ranking as a table and as a picture.
func TestSavedFiles(t *testing.T) {
	b := browsertest.Start(t)
	opened(t, b)
	dir := t.TempDir()
	b.Do(chromedp.Func(func(ctx context.Context, c *chromedp.Target) error {
		_, err := cdp.Call(ctx, c, browser.SetDownloadBehavior, browser.SetDownloadBehaviorParams{Behavior: browser.SetDownloadBehaviorBehaviorAllow, DownloadPath: dir})
		return err
	}))
	saved := func(button, name string) string {
		press(b, ".keep button:nth-child("+button+")")
		for deadline := time.Now().Add(browsertest.Patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
			if text, err := os.ReadFile(dir + "/" + name); err == nil && len(text) > 0 {
				return string(text)
			}
		}
		t.Fatalf("%s was not saved", name)
		return ""
	}
	table := saved("1", "ranking.csv")
	if lines := strings.Split(strings.TrimSpace(table), "\n"); len(lines) != 7 || !strings.HasPrefix(lines[1], `"A","macvlan","+2`) {
		t.Errorf("the table saved is %q", table)
	}
	if picture := saved("2", "ranking.png"); !strings.HasPrefix(picture, "\x89PNG") || len(picture) < 10_000 {
		t.Errorf("the picture saved has %d bytes and begins with %q", len(picture), picture[:min(8, len(picture))])
	}
	b.Quiet()
}

// testPrinted: what a manager prints is eight pages at most, though much more is folded, and however long the run's lists are.
func testPrinted(t *testing.T, b *browsertest.Browser) {
	run, trials := usual().run(t)
	many, manyTrials := large(t, 12, 20)
	many.Claims, many.Notes, many.Checks, many.Advice = slices.Repeat(run.Claims, 10), slices.Repeat(run.Notes, 10), slices.Repeat(run.Checks, 30), slices.Repeat(run.Advice, 10)
	many.Effects = slices.Repeat(run.Effects, 10)
	for name, page := range map[string]string{"usual": written(t, run, trials), "many": written(t, many, manyTrials)} {
		b.View(1400, 900, "light")
		b.Open(page)
		for paper, size := range map[string]pages.PrintToPDFParams{"Letter": {}, "A4": {PaperWidth: 8.27, PaperHeight: 11.69}} {
			if n := printed(b, size); n < 2 || n > 8 {
				t.Errorf("%s: printed are %d pages of %s, want 2 to 8", name, n, paper)
			}
		}
	}
	b.Open(written(t, run, trials))
	b.Do(chromedp.Func(func(ctx context.Context, c *chromedp.Target) error {
		_, err := cdp.Call(ctx, c, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: "print"})
		return err
	}))
	commands := 0
	for _, a := range run.Advice {
		if len(a.How) > 0 {
			commands++
		}
	}
	if got := browsertest.Ask[int](b, `[...document.querySelectorAll('.advice summary + :is(p, pre), .advice summary + p + pre')]
		.filter((e) => e.matches('pre') && e.checkVisibility() && e.getBoundingClientRect().height > 0).length`); commands == 0 || got != commands {
		t.Errorf("on paper %d entries of advice have commands, want %d", got, commands)
	}
}

// printed is how many sheets the browser's page is on paper.
func printed(b *browsertest.Browser, paper pages.PrintToPDFParams) (sheets int) {
	b.Do(chromedp.Func(func(ctx context.Context, c *chromedp.Target) error {
		got, err := cdp.Call(ctx, c, pages.PrintToPDF, paper)
		if err == nil {
			sheets = len(regexp.MustCompile(`/Type\s*/Page\b`).FindAllString(string(got.Data), -1))
		}
		return err
	}))
	return sheets
}

// testAccessible has axe-core look at the page of a run that was asked for goals and was profiled.
func testAccessible(t *testing.T, b *browsertest.Browser) {
	w := usual()
	w.loads = w.loads[2:] // which look like the others
	run, trials := w.run(t)
	run.Goals = goals()
	b.View(1400, 900, "light")
	b.Open(written(t, run, trials, WithFlame(functions())))
	unfold(b)
	b.Accessible("html")
	b.View(1400, 900, "dark")
	b.Accessible("html", "color-contrast") // nothing else depends on the colours
}
