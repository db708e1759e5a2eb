package html

import (
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"netdelta/report/browsertest"
)

// What the page of ten thousand cells may take: bytes, and a browser's processor time until it is drawn, as a multiple of what it takes for
// as many plain lines as the page has elements.
const (
	largeMost     = 5_000_000
	largeElements = 26_000
	drawnWithin   = 2.5
)

// Pages of ten thousand cells stay small, be it that the run has many networks or many settings; one is opened, too.
func TestLargeRun(t *testing.T) {
	writeLarge(t, 3, 1000)
	page := writeLarge(t, 8, 500)
	t.Run("drawn", func(t *testing.T) { openLarge(t, page) })
}

// writeLarge writes the page of so many networks under so many loads.
func writeLarge(t *testing.T, networks, loads int) (page string) {
	t.Helper()
	run, trials := large(t, networks, loads)
	if len(run.Cells) < 10_000 {
		t.Fatalf("only %d cells", len(run.Cells))
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	began := time.Now()
	page = written(t, run, trials)
	took := time.Since(began)
	runtime.ReadMemStats(&after)
	info, err := os.Stat(page)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d cells, %d deltas, %d trials: %.1f MB in %s; %.0f MB allocated in all, the heap taken from the system is %.0f MB larger",
		len(run.Cells), len(run.Deltas), len(trials), float64(info.Size())/1e6, took.Round(time.Millisecond),
		float64(after.TotalAlloc-before.TotalAlloc)/1e6, (float64(after.HeapSys)-float64(before.HeapSys))/1e6)
	if info.Size() > largeMost {
		t.Errorf("the report of %d networks under %d loads has %d bytes, want at most %d", networks, loads, info.Size(), largeMost)
	}
	return page
}

// openLarge opens the page.
func openLarge(t *testing.T, page string) {
	browser := browsertest.Start(t)
	lines := plainLines(t, largeElements)
	var b *browsertest.Browser
	plain, whole := time.Duration(math.MaxInt64), time.Duration(math.MaxInt64)
	for range 3 { // a busy machine only adds
		_, busy := draw(t, browser, lines)
		plain = min(plain, busy)
		b, busy = draw(t, browser, page)
		if whole = min(whole, busy); whole.Seconds() <= drawnWithin*plain.Seconds() {
			break
		}
	}
	elements := browsertest.Ask[int](b, `document.getElementsByTagName('*').length`)
	ratio := whole.Seconds() / plain.Seconds()
	t.Logf("the page's thread is busy for %s until its %d elements are drawn, %.1f times the %s for %d lines", whole, elements, ratio, plain, largeElements)
	if ratio > drawnWithin {
		t.Errorf("the page takes %.1f times what plain lines take, want at most %.1f times", ratio, drawnWithin)
	}
	if n := len(visible(b, ".ranking .fp", "e.tagName")); n != 8 {
		t.Errorf("%d networks are ranked on top, want 8", n)
	}
	// So many settings are chosen from a list, not from chips that fill the first screen.
	browsertest.Ask[bool](b, `(() => { const c = document.getElementById('rank'); c.value = 's3'; c.dispatchEvent(new Event('change')); return true; })()`)
	if ids := visible(b, ".ranking", "e.id"); !slices.Equal(ids, []string{"rank-s3"}) || len(visible(b, "[data-rank]", "e.tagName")) > 0 {
		t.Errorf("after s3 was chosen the rankings %q are shown", ids)
	}
	// What is folded is looked for, unfolded and drawn.
	browsertest.Ask[bool](b, `(() => { const f = document.getElementById('find'); f.value = '563B nodes'; f.dispatchEvent(new Event('input')); return true; })()`)
	got := visible(b, ".setting", "e.querySelector('h3').textContent")
	if len(got) != 1 || !strings.Contains(got[0], "563B") || !strings.Contains(got[0], "across nodes") {
		t.Errorf("looking for a setting finds %q", got)
	}
	if n := len(visible(b, ".forest .fp", "e.tagName")); n != 0 {
		t.Errorf("%d rows are drawn of a folded setting", n)
	}
	b.Do(chromedp.Click(chromedp.CSS(".setting:not([hidden]) summary")))
	drawn(b)
	if n := len(visible(b, ".fp .pt", "e.tagName")); n != 9 {
		t.Errorf("%d rows are drawn of the unfolded setting, want the null check and 8 networks", n)
	}
	b.Quiet()
}

// draw opens a page with a profile of its own, and returns how long its thread was busy until it was drawn.
func draw(t *testing.T, browser *browsertest.Browser, page string) (b *browsertest.Browser, busy time.Duration) {
	t.Helper()
	b = browser.Another(t)
	b.View(1440, 900, "light")
	before := b.Busy()
	b.Open(page)
	drawn(b)
	if busy = b.Busy(); busy > before { // or it is another process, which began with the page
		busy -= before
	}
	return b, busy
}

// drawn waits until the page is drawn as it is now.
func drawn(b *browsertest.Browser) {
	browsertest.Ask[bool](b, `new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))`, chromedp.EvalAwaitPromise)
}

// plainLines writes a page of so many lines.
func plainLines(t *testing.T, n int) (page string) {
	t.Helper()
	page = filepath.Join(t.TempDir(), "lines.html")
	text := "<!doctype html>" + strings.Repeat("<p>a line of text", n) + "<script>document.documentElement.dataset.ready = 'true'</script>"
	if err := os.WriteFile(page, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return page
}
