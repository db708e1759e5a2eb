package html

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"netdelta/internal/require"
	"netdelta/result"
)

// patience is how long a browser may take for anything; it is there to end a test that hangs.
const patience = 2 * time.Minute

// browser is a headless Chromium with one page, and what it had to complain about.
type browser struct {
	t   testing.TB
	ctx context.Context

	lock       sync.Mutex
	complaints []string
	requests   []string
}

// startBrowser starts one, which ends with the test.
func startBrowser(t testing.TB) *browser {
	t.Helper()
	// All that it writes is in one folder, which ends with the test.
	home := t.TempDir()
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(require.Tool(t, "chromium")),
		chromedp.UserDataDir(home),
		chromedp.Env("HOME="+home, "TMPDIR="+home, "XDG_CACHE_HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_RUNTIME_DIR="+home),
		chromedp.WSURLReadTimeout(patience),
		chromedp.Flag("hide-scrollbars", true),
	)
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(stop) // waits for the process
	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(cancel)
	b := &browser{t: t, ctx: ctx}
	if err := chromedp.Listen(ctx, b.hear); err != nil {
		t.Fatalf("start chromium: %v", err)
	}
	// The browser lives as long as the context above; its end is asked for and waited for, not left to a signal.
	t.Cleanup(func() {
		if err := chromedp.Cancel(ctx); err != nil {
			t.Errorf("end chromium: %v", err)
		}
	})
	return b
}

// hear keeps what the page says on its console, what it throws and what it asks for.
func (b *browser) hear(event any) {
	b.lock.Lock()
	defer b.lock.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		b.complaints = append(b.complaints, fmt.Sprintf("exception: %s %v", e.ExceptionDetails.Text, e.ExceptionDetails.Exception))
	case *runtime.EventConsoleAPICalled:
		b.complaints = append(b.complaints, fmt.Sprintf("console.%s", e.Type))
	case *log.EventEntryAdded:
		b.complaints = append(b.complaints, fmt.Sprintf("%s: %s", e.Entry.Level, e.Entry.Text))
	case *network.EventRequestWillBeSent:
		b.requests = append(b.requests, e.Request.URL)
	}
}

// do runs steps.
func (b *browser) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.t.Fatal(err)
	}
}

// ask evaluates an expression in the page.
func ask[T any](b *browser, expression string, options ...chromedp.EvaluateOption) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, options...))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// view sets the size of the window and the colour scheme.
func (b *browser) view(width, height int64, scheme string) {
	b.t.Helper()
	b.do(
		chromedp.EmulateViewport(width, height),
		chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
			_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
				Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
			})
			return err
		}),
	)
}

// open loads a page and waits until its script has run.
func (b *browser) open(path string) {
	b.t.Helper()
	address := url.URL{Scheme: "file", Path: path}
	b.do(chromedp.Navigate(address.String()))
	if ready := ask[string](b, `document.documentElement.dataset.ready || 'not'`); ready != "true" {
		b.t.Fatalf("the page's script did not run to its end; complaints: %q", b.complaints)
	}
}

// quiet fails if the page complained, or asked for anything but itself.
func (b *browser) quiet() {
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

// picture writes what a selector finds as PNG, or what the window shows, or the whole page.
func (b *browser) picture(path, selector string, whole bool) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
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

// written writes a run's report into a folder that ends with the test.
func written(t testing.TB, run result.Run, trials []result.Trial, options ...Option) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "report.html")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := Write(f, run, trials, options...); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}
