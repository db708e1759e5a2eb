package serve_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chromedp/chromedp"

	"netdelta/report/browsertest"
	"netdelta/report/loopback"
	"netdelta/report/page"
	"netdelta/report/reporttest"
	"netdelta/report/serve"
	"netdelta/result"
)

// folder holds three runs of one study, the last under way, and what is no run.
func folder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for i, ended := range []string{"budget", "budget", "running"} {
		began := time.Date(2030, 1, 2, 3, i, 0, 0, time.UTC)
		run := result.Run{
			Schema: result.Schema, Run: fmt.Sprintf("nightly-%d", i), Study: "nightly <b>", Testbed: "lab", Ended: ended,
			Started: began, Finished: began.Add(time.Minute), Confidence: 0.95, Margin: 0.02,
		}
		for _, name := range []string{"bridge", "vxlan"} {
			ratio := 1.1 + 0.1*float64(i)
			low, high := ratio-0.01, ratio+0.01
			run.Deltas = append(run.Deltas, result.Delta{
				Network: name, Baseline: "host", Setting: result.Setting{Workload: "tcp-rr", Placement: result.SameNode}, Path: "pod", Metric: "p50", Headline: true,
				Unit: "ns", Better: "lower", Judgement: result.Judgement{Ratio: ratio, RatioLow: &low, RatioHigh: &high, Verdict: "slower", Blocks: 6},
			})
		}
		write(t, filepath.Join(dir, run.Run), run)
	}
	if err := os.Mkdir(filepath.Join(dir, "other"), 0o755); err != nil {
		t.Fatal(err)
	}
	graphs := filepath.Join(dir, "nightly-0", "flame")
	if err := errors.Join(
		os.Symlink("nightly-2", filepath.Join(dir, "latest")), os.Mkdir(graphs, 0o755),
		os.WriteFile(filepath.Join(graphs, "vxlan.html"), []byte("a graph"), 0o600), os.WriteFile(filepath.Join(graphs, "vxlan.folded"), nil, 0o600),
		os.Symlink("../../nightly-1/result.json", filepath.Join(graphs, "planted.html")),
	); err != nil {
		t.Fatal(err)
	}
	return dir
}

// write writes a run folder.
func write(t *testing.T, dir string, run result.Run) {
	t.Helper()
	f, err := result.Create(dir, []byte("study: nightly\n"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.WriteResult(run), f.Close()); err != nil {
		t.Fatal(err)
	}
}

// runs serves the folder, with pages that name their run.
func runs(t *testing.T) serve.Runs {
	return serve.Runs{
		Dir: folder(t),
		Page: func(w io.Writer, folder string) (bool, error) {
			_, err := fmt.Fprintf(w, "<head><meta http-equiv=\"Content-Security-Policy\" content=\"style-src 'self'\"></head><body>page of %s", filepath.Base(folder))
			return filepath.Base(folder) == "nightly-2", err
		},
		Compare: func(before, after string) (result.Comparison, error) {
			if filepath.Base(before) == filepath.Base(after) {
				return result.Comparison{Says: "they are the same run"}, nil
			}
			c := reporttest.Comparisons(t)["all"]
			c.Says = "from " + filepath.Base(before) + " to " + filepath.Base(after) + " \x1b<script>"
			c.Differences[0].New += "<script>"
			return c, nil
		},
	}
}

func TestAnswers(t *testing.T) {
	handler := runs(t).Handler()
	for address, want := range map[string]struct {
		status  int
		says    []string
		refresh string
	}{
		"/":                                     {200, []string{"nightly-2", "nightly &lt;b&gt; on lab, over 3 runs", "vxlan +30%", "bridge +30%"}, ""},
		"/run/nightly-0":                        {302, nil, ""},
		"/run/nightly-0/":                       {200, []string{"page of nightly-0", `href="/"`, `href="/run/nightly-1/" rel="next"`}, ""},
		"/run/nightly-2/":                       {200, []string{"page of nightly-2", `href="/run/nightly-1/" rel="prev"`, "/compare?old=nightly-1&amp;new=nightly-2"}, "5"},
		"/run/nightly-0/flame/vxlan.html":       {200, []string{"a graph"}, ""},
		"/run/nightly-0/flame/planted.html":     {404, nil, ""},
		"/run/nightly-0/flame/vxlan.folded":     {404, nil, ""},
		"/run/nightly-0/flame/..%2fresult.json": {404, nil, ""},
		"/run/nightly-1/flame/vxlan.html":       {404, nil, ""},
		"/compare?old=nightly-0&new=nightly-0":  {200, []string{"they are the same run", `href="/run/nightly-0/"`}, ""},
		"/compare?old=nightly-0&new=nightly-1": {200, []string{
			"from nightly-0 to nightly-1 ?&lt;script&gt;", "regressed", "old vs host", "[&#43;6.0, &#43;7.1]", "/compare?old=nightly-1&amp;new=nightly-0", "cubic", `href="/"`,
		}, ""},
		"/run/latest/":                           {404, []string{"no such run"}, ""},
		"/run/other/":                            {404, nil, ""},
		"/run/..%2f..":                           {404, nil, ""},
		"/compare?old=nightly-0&new=../nightly1": {404, nil, ""},
		"/compare?old=..&new=nightly-1":          {404, nil, ""},
		"/compare?old=.&new=nightly-1":           {404, nil, ""},
		"/etc/passwd":                            {404, nil, ""},
	} {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, address, http.NoBody))
		if w.Code != want.status || w.Header().Get("Refresh") != want.refresh {
			t.Errorf("%s: status %d, refresh %q, want %d and %q", address, w.Code, w.Header().Get("Refresh"), want.status, want.refresh)
		}
		for _, says := range want.says {
			if !strings.Contains(w.Body.String(), says) {
				t.Errorf("%s does not say %q", address, says)
			}
		}
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", http.NoBody))
	if w.Code != http.StatusMethodNotAllowed {
		t.Errorf("a POST has status %d", w.Code)
	}
}

// Headers say what may be done with a page: what the page itself says, and that no other may show it.
func TestHeaders(t *testing.T) {
	r := runs(t)
	r.Page = func(w io.Writer, _ string) (bool, error) {
		return false, page.New(`<head><meta http-equiv="Content-Security-Policy" content="{{policy}}"></head><body>{{.}}`, "s+", "s").Write(w, "a page", "text")
	}
	for address, policy := range map[string]string{
		"/run/nightly-0/":                      strings.Split(page.Policy("s", "s+"), "style-src")[0],
		"/run/nightly-0/flame/vxlan.html":      "sandbox allow-scripts; default-src 'none'; ",
		"/compare?old=nightly-0&new=nightly-1": "default-src 'none'; script-src 'sha256-",
		"/":                                    "default-src 'none'; script-src 'sha256-",
		"/run/other/":                          "default-src 'none'",
	} {
		w := httptest.NewRecorder()
		r.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, address, http.NoBody))
		all := w.Header().Values("Content-Security-Policy")
		said := all[0] + "; " + all[len(all)-1]
		if !strings.HasPrefix(said, policy) || !strings.HasSuffix(said, "; frame-ancestors 'none'") {
			t.Errorf("%s: the policy is %q", address, said)
		}
		if w.Header().Get("X-Content-Type-Options") != "nosniff" || w.Header().Get("Referrer-Policy") != "no-referrer" {
			t.Errorf("%s: the headers are %v", address, w.Header())
		}
	}
}

// Few pages are made at once. Who asks for one more waits, and is then told to come again.
func TestManyPages(t *testing.T) {
	r := runs(t)
	synctest.Test(t, func(t *testing.T) {
		var making atomic.Int32
		finish := make(chan struct{})
		r.Page = func(io.Writer, string) (bool, error) {
			making.Add(1)
			<-finish
			return false, nil
		}
		handler := r.Handler()
		asked := make([]*httptest.ResponseRecorder, 20)
		var group sync.WaitGroup
		for i := range asked {
			asked[i] = httptest.NewRecorder()
			group.Go(func() {
				handler.ServeHTTP(asked[i], httptest.NewRequest(http.MethodGet, "/run/nightly-0/", http.NoBody))
			})
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		most, refused := int(making.Load()), 0
		close(finish)
		group.Wait()
		for _, w := range asked {
			if w.Code == http.StatusServiceUnavailable && w.Header().Get("Retry-After") != "" {
				refused++
			}
		}
		if refused != len(asked)-most || most > 4 {
			t.Errorf("of %d pages, %d were made at once and %d refused", len(asked), most, refused)
		}
		w := httptest.NewRecorder()
		if handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/run/nightly-0/", http.NoBody)); w.Code != http.StatusOK {
			t.Errorf("afterwards a page has status %d", w.Code)
		}
	})
}

// TestListInBrowser marks two runs and follows the link, at a real socket.
func TestListInBrowser(t *testing.T) {
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	stop := loopback.Serve(listener, runs(t).Handler(), 0)
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	address := url.URL{Scheme: "http", Host: listener.Addr().String(), Path: "/"}
	b := browsertest.Start(t)
	b.Font(browsertest.WideFont)
	for _, scheme := range []string{"light", "dark"} {
		b.View(1400, 900, scheme)
		b.Do(chromedp.Navigate(address.String()), chromedp.WaitReady(chromedp.CSS(`html[data-ready="true"]`)))
		b.Accessible("html")
	}
	b.View(400, 900, "light")
	if over := browsertest.Ask[int](b, `document.documentElement.scrollWidth - innerWidth`); over > 0 {
		t.Errorf("a phone shows the list with %d pixels beyond its edge", over)
	}
	if hidden := browsertest.Ask[int](b, `[...document.querySelectorAll('td.answer')].filter((e) => e.getBoundingClientRect().right > innerWidth).length`); hidden > 0 {
		t.Errorf("a phone cuts %d answers", hidden)
	}
	b.View(1400, 900, "light")
	if n := browsertest.Ask[int](b, `document.querySelectorAll('svg .line').length`); n != 2 {
		t.Errorf("%d courses are drawn, want 2", n)
	}
	for _, name := range []string{"nightly-2", "nightly-0"} {
		b.Do(chromedp.Click(chromedp.CSS(`input[value="` + name + `"]`)))
	}
	b.Do(chromedp.Click(chromedp.CSS("#compare")), chromedp.WaitReady(chromedp.CSS("table.changes")))
	if says := browsertest.Ask[string](b, `document.querySelector('h1 ~ .says').textContent`); says != "from nightly-0 to nightly-2 ?<script>" {
		t.Errorf("the comparison says %q", says)
	}
	for _, width := range []int64{1400, 760, 400} {
		b.View(width, 900, "light")
		b.Accessible("html")
		if over := browsertest.Ask[int](b, `document.documentElement.scrollWidth - innerWidth`); over > 0 {
			t.Errorf("at %d pixels the comparison is %d pixels too wide", width, over)
		}
	}
	b.Axis("section:first-of-type .axis text", 3)
	follow := func(link string) string {
		b.Do(chromedp.Click(chromedp.CSS(link)), chromedp.WaitReady(chromedp.CSS("body")))
		return browsertest.Ask[string](b, `location.pathname + location.search`)
	}
	for _, step := range []struct{ link, to string }{
		{`nav a[href="/run/nightly-2/"]`, "/run/nightly-2/"}, {`nav a[rel="prev"]`, "/run/nightly-1/"},
		{`nav a[href^="/compare"]`, "/compare?old=nightly-0&new=nightly-1"}, {`nav a[href="/"]`, "/"},
	} {
		if at := follow(step.link); at != step.to {
			t.Errorf("%s leads to %s, want %s", step.link, at, step.to)
		}
	}
	b.Axis(".course .axis text", 1)
	if said := b.Complaints(); len(slices.DeleteFunc(said, func(c string) bool { return strings.Contains(c, "favicon") })) > 0 {
		t.Errorf("the browser complains: %q", said)
	}
}
