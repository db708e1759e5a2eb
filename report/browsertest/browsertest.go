// Package browsertest drives a real headless Chromium over the pages that netdelta writes: only tests import it.
package browsertest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"netdelta/internal/require"
)

// Patience is how long a browser may take for anything; it is there to end a test that hangs.
const Patience = 2 * time.Minute

// Browser is a headless Chromium with one page, and what it had to complain about.
type Browser struct {
	t   testing.TB
	ctx context.Context

	lock       sync.Mutex
	complaints []string
	requests   []string
}

// Start starts one, which ends with the test.
func Start(t testing.TB) *Browser {
	t.Helper()
	// All that it writes is in one folder, which ends with the test.
	home := t.TempDir()
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(require.Tool(t, "chromium")),
		chromedp.UserDataDir(home),
		chromedp.Env("HOME="+home, "TMPDIR="+home, "XDG_CACHE_HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_RUNTIME_DIR="+home),
		chromedp.WSURLReadTimeout(Patience),
		chromedp.Flag("hide-scrollbars", true),
	)
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(stop) // waits for the process
	return open(allocator, t)
}

// Another is a page of its own in the same browser, with nothing of the other pages' in its profile, which ends with the test: a browser's start takes a
// second of processor time.
func (b *Browser) Another(t testing.TB) *Browser {
	t.Helper()
	return open(b.ctx, t, chromedp.WithNewBrowserContext())
}

// open opens a page, and the browser with it where there is none yet.
func open(parent context.Context, t testing.TB, options ...chromedp.ContextOption) *Browser {
	t.Helper()
	ctx, cancel := chromedp.NewContext(parent, options...)
	t.Cleanup(cancel)
	b := &Browser{t: t, ctx: ctx}
	if err := chromedp.Listen(ctx, b.hear); err != nil {
		t.Fatalf("start chromium: %v", err)
	}
	// It lives as long as the context above; its end is asked for and waited for, not left to a signal.
	t.Cleanup(func() {
		if err := chromedp.Cancel(ctx); err != nil {
			t.Errorf("end chromium: %v", err)
		}
	})
	return b
}

// hear keeps what the page says on its console, what it throws and what it asks for.
func (b *Browser) hear(event any) {
	b.lock.Lock()
	defer b.lock.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		b.complaints = append(b.complaints, fmt.Sprintf("exception: %s %v", e.ExceptionDetails.Text, e.ExceptionDetails.Exception))
	case *runtime.EventConsoleAPICalled:
		b.complaints = append(b.complaints, fmt.Sprintf("console.%s", e.Type))
	case *log.EventEntryAdded:
		b.complaints = append(b.complaints, strings.TrimSpace(fmt.Sprintf("%s: %s %s", e.Entry.Level, e.Entry.Text, e.Entry.URL)))
	case *network.EventRequestWillBeSent:
		b.requests = append(b.requests, e.Request.URL)
	}
}

// Do runs steps.
func (b *Browser) Do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, Patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.t.Fatal(err)
	}
}

// Ask evaluates an expression in the page.
func Ask[T any](b *Browser, expression string, options ...chromedp.EvaluateOption) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, Patience)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, options...))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// View sets the size of the window and the colour scheme.
func (b *Browser) View(width, height int64, scheme string) {
	b.t.Helper()
	b.Do(
		chromedp.EmulateViewport(width, height),
		chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
			_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
				Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
			})
			return err
		}),
	)
}

// Widths of fonts, as the mean width of a letter in parts of the size of the font: common fonts without serifs are between Liberation Sans
// Narrow and DejaVu Sans.
const (
	NarrowFont = 0.41
	WideFont   = 0.59
)

// Axis checks that an axis has values at all widths of screens, at least so many, none on another and none beyond the page. The selector
// finds its labels.
func (b *Browser) Axis(selector string, least int) {
	b.t.Helper()
	for _, width := range []int64{1400, 760, 320} {
		b.Do(chromedp.EmulateViewport(width, 900))
		wrong := Ask[string](b, fmt.Sprintf(`new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => {
			const all = [...document.querySelectorAll(%q)].map(l => l.getBoundingClientRect());
			if (all.length < %d) return done(all.length + ' values');
			if (all.some(r => r.width === 0)) return done('a value is hidden');
			const meet = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
			if (all.some((a, i) => all.some((b, k) => i < k && meet(a, b)))) return done('values lie on one another');
			done(all.some(r => r.right > document.documentElement.clientWidth + 1 || r.left < -1) ? 'a value stands beyond the page' : '');
		})))`, selector, least), chromedp.EvalAwaitPromise)
		if wrong != "" {
			b.t.Errorf("at %d pixels the axis %s: %s", width, selector, wrong)
		}
	}
}

// Font makes text in all pages that are opened from now on as wide as in a font whose letters are that wide, whichever fonts the machine has:
// what is between the machine's font and that one is put between letters.
func (b *Browser) Font(width float64) {
	b.t.Helper()
	source := fmt.Sprintf(`addEventListener('DOMContentLoaded', () => {
		const letters = document.createElement('canvas').getContext('2d');
		letters.font = '100px ' + getComputedStyle(document.body).fontFamily;
		const text = 'abcdefghijklmnopqrstuvwxyz';
		const style = new CSSStyleSheet();
		style.replaceSync('*:not(pre, code, .mono) { letter-spacing: ' + (%g - letters.measureText(text).width / 100 / text.length) + 'em !important; }');
		document.adoptedStyleSheets = [style];
	})`, width)
	b.Do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: source})
		return err
	}))
}

// Open loads a page and waits until its script has run.
func (b *Browser) Open(path string) {
	b.t.Helper()
	address := url.URL{Scheme: "file", Path: path}
	b.Do(chromedp.Navigate(address.String()))
	if ready := Ask[string](b, `document.documentElement.dataset.ready || 'not'`); ready != "true" {
		b.t.Fatalf("the page's script did not run to its end; complaints: %q", b.complaints)
	}
}

// Busy is how long the page's thread has had a processor so far. Unlike a time by the clock it has nothing of what else the machine does.
func (b *Browser) Busy() (busy time.Duration) {
	b.t.Helper()
	b.Do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		domain := performance.EnableParams{TimeDomain: performance.EnableTimeDomainThreadTicks}
		if _, err := cdp.Call(ctx, t, performance.Enable, domain); err != nil {
			return err
		}
		said, err := cdp.Call(ctx, t, performance.GetMetrics, cdp.Empty{})
		if err != nil {
			return err
		}
		i := slices.IndexFunc(said.Metrics, func(m *performance.Metric) bool { return m.Name == "TaskDuration" })
		if i < 0 {
			return errors.New("the browser does not say how long its tasks took")
		}
		busy = time.Duration(said.Metrics[i].Value * float64(time.Second))
		return nil
	}))
	return busy
}

// Complaints are what the page has had to complain about since Quiet was last asked.
func (b *Browser) Complaints() []string {
	b.lock.Lock()
	defer b.lock.Unlock()
	return slices.Clone(b.complaints)
}

// Quiet fails if the page complained, or asked for anything but itself.
func (b *Browser) Quiet() {
	b.t.Helper()
	b.lock.Lock()
	defer b.lock.Unlock()
	for _, c := range b.complaints {
		b.t.Errorf("the browser complains: %s", c)
	}
	for _, r := range b.requests {
		if !strings.HasPrefix(r, "file://") || !strings.HasSuffix(r, ".html") {
			b.t.Errorf("the page asked for %s", r)
		}
	}
	b.complaints, b.requests = nil, nil
}

// Picture writes what a selector finds as PNG, or what the window shows, or the whole page.
func (b *Browser) Picture(path, selector string, whole bool) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, Patience)
	defer cancel()
	take := chromedp.CaptureScreenshot()
	switch {
	case whole:
		take = chromedp.FullScreenshot(100)
	case selector != "":
		take = chromedp.Screenshot(chromedp.CSS(selector))
	}
	data, err := chromedp.Run(ctx, take)
	if err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// The version of axe-core, and the sum that the npm registry publishes for it.
const (
	axeVersion = "4.11.0"
	axeSum     = "ilYanEU8vxxBexpJd8cWM4ElSQq4QctCLKih0TSfjIfCQTeyH/6zVrmIJfLPrKTKJRbiG+cfnZbQIjAlJmF1jQ=="
)

// Accessible fails for what axe-core, which npm fetches once a machine, finds against WCAG 2.1 A and AA in what a selector finds in the page
// as it is drawn now, by these of its rules if any are given. It takes a second of processor time for a few thousand elements: "html" is worth it once for pages that have most in common.
func (b *Browser) Accessible(within string, rules ...string) {
	b.t.Helper()
	run := `['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa']`
	if len(rules) > 0 {
		run = `{type: 'rule', values: ['` + strings.Join(rules, `', '`) + `']}`
	}
	Ask[bool](b, b.axeScript()+`; true`)
	found := Ask[[]string](b, `axe.run('`+within+`', {runOnly: `+run+`, resultTypes: ['violations']}).then((r) =>
		r.violations.flatMap((v) => v.nodes.slice(0, 3).map((n) => v.id + ': ' + v.help + ': ' + n.target + ' ' + (n.any[0] || n.all[0] || n.none[0] || {message: ''}).message)))`,
		chromedp.EvalAwaitPromise)
	for _, f := range found {
		b.t.Errorf("axe-core: %s", f)
	}
}

// axeScript is the library's text.
func (b *Browser) axeScript() string {
	b.t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		b.t.Fatalf("find the folder of cached files: %v", err)
	}
	dir := filepath.Join(cache, "netdelta", "tools")
	path := filepath.Join(dir, "axe-core-"+axeVersion+".tgz")
	packed, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		packed, err = fetchAxe(b, dir, path)
	}
	if err != nil {
		b.t.Fatalf("read axe-core: %v", err)
	}
	if sum := sha512.Sum512(packed); base64.StdEncoding.EncodeToString(sum[:]) != axeSum {
		b.t.Fatalf("%s is not axe-core %s: its sum differs; remove it and try again", path, axeVersion)
	}
	text, err := member(packed, "package/axe.min.js")
	if err != nil {
		b.t.Fatalf("unpack %s: %v", path, err)
	}
	return text
}

// fetchAxe has npm write the package's archive.
func fetchAxe(b *Browser, dir, path string) ([]byte, error) {
	npm := require.Tool(b.t, "npm")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if out, err := exec.Command(npm, "pack", "--silent", "--pack-destination", dir, "axe-core@"+axeVersion).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("npm pack axe-core@%s: %w: %s", axeVersion, err, out)
	}
	return os.ReadFile(path)
}

// member is the text of a file in a packed archive.
func member(packed []byte, name string) (string, error) {
	unpacked, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return "", err
	}
	for archive := tar.NewReader(unpacked); ; {
		head, err := archive.Next()
		if err != nil {
			return "", fmt.Errorf("find %s: %w", name, err)
		}
		if head.Name == name {
			text, err := io.ReadAll(archive)
			return string(text), err
		}
	}
}
