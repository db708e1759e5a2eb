package html

import (
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"netdelta/report/browsertest"
)

// What the page of ten thousand cells may take: bytes, and milliseconds until a browser has drawn it.
const (
	largeMost   = 5_000_000
	drawnWithin = 3000
)

// TestLargeRun writes the page of ten thousand cells and opens it.
func TestLargeRun(t *testing.T) {
	run, trials := large(t)
	if len(run.Cells) < 10_000 {
		t.Fatalf("only %d cells", len(run.Cells))
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	began := time.Now()
	page := written(t, run, trials)
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
		t.Errorf("the report has %d bytes, want at most %d", info.Size(), largeMost)
	}
	t.Run("drawn", func(t *testing.T) { openLarge(t, page) })
}

// openLarge opens the page three times, of which the best counts: what else the machine does can only make it slower.
func openLarge(t *testing.T, page string) {
	b := browsertest.Start(t)
	b.View(1440, 900, "light")
	var took []float64
	for range 3 {
		b.Open(page)
		took = append(took, browsertest.Ask[float64](b,
			`new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now()))))`, chromedp.EvalAwaitPromise))
	}
	read := browsertest.Ask[float64](b, `performance.getEntriesByType('navigation')[0].domInteractive`)
	elements := browsertest.Ask[int](b, `document.getElementsByTagName('*').length`)
	t.Logf("drawn after %.0f ms (best of %.0f), of which the last took %.0f ms to read; %d elements", slices.Min(took), took, read, elements)
	if best := slices.Min(took); best > drawnWithin {
		t.Errorf("the page is drawn after %.0f ms, want at most %d", best, drawnWithin)
	}
	if n := len(visible(b, ".ranking .fp", "e.tagName")); n != 8 {
		t.Errorf("%d networks are ranked on top, want 8", n)
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
	browsertest.Ask[bool](b, `new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))`, chromedp.EvalAwaitPromise)
	if n := len(visible(b, ".fp .pt", "e.tagName")); n != 9 {
		t.Errorf("%d rows are drawn of the unfolded setting, want the null check and 8 networks", n)
	}
	b.Quiet()
}
