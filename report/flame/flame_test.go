package flame

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"

	"netdelta/internal/golden"
	"netdelta/probe/flame"
	"netdelta/report/browsertest"
)

// profile is one as it could be: a network that runs more functions has a tunnel.
func profile(tunnel bool) flame.Profile {
	stack := func(names ...string) []flame.Frame {
		frames := []flame.Frame{{Function: "main.main"}}
		for _, n := range names {
			frames = append(frames, flame.Frame{Function: n, Kernel: true})
		}
		return frames
	}
	p := flame.Profile{
		Event: flame.Clock, Period: time.Millisecond, Duration: time.Second, Processors: 2,
		Samples: []flame.Sample{
			{Space: "pod0", Process: "netdelta", Stack: stack("do_syscall_64", "tcp_sendmsg", "__dev_queue_xmit", "veth_xmit"), Ticks: 300},
			{Space: "pod0", Process: "netdelta", Stack: stack("do_syscall_64", "tcp_recvmsg"), Ticks: 200},
			{Space: flame.Elsewhere, Process: "idle", Idle: true, Stack: []flame.Frame{{Function: "do_idle", Kernel: true}}, Ticks: 1400},
		},
	}
	if tunnel {
		p.Samples = append(p.Samples, flame.Sample{
			Space: "pod0", Process: "netdelta", SoftIRQ: true, Stack: stack("do_syscall_64", "tcp_sendmsg", "__dev_queue_xmit", "vxlan_xmit"), Ticks: 150,
		})
	}
	return p
}

// sides are a network without a tunnel and one with it.
func sides() []Side {
	per := Unit{Name: "transaction", Count: 10_000}
	return []Side{{"bridge", profile(false), per}, {"vxlan</script><script>window.hit = 1", profile(true), per}}
}

func written(t *testing.T, sides ...Side) (path, text string) {
	t.Helper()
	var out bytes.Buffer
	if err := Write(&out, sides...); err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "flame.html")
	if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return path, out.String()
}

func TestGolden(t *testing.T) {
	_, text := written(t, sides()...)
	// What is drawn with is not what is drawn.
	text = strings.NewReplacer(style, "STYLE", script, "SCRIPT").Replace(text)
	before, rest, _ := strings.Cut(text, "script-src")
	_, after, _ := strings.Cut(rest, "base-uri")
	golden.Check(t, "testdata/difference.html", before+"base-uri"+after)
	if err := Write(&bytes.Buffer{}); err == nil {
		t.Error("a page of nothing was written")
	}
}

// Chains of a program's runtime are one frame each; functions of the program and of the kernel stay.
func TestRuntimeIsFolded(t *testing.T) {
	user := func(name string) flame.Frame { return flame.Frame{Function: name} }
	kernel := flame.Frame{Function: "runtime.kernel", Kernel: true}
	got := folded([]flame.Frame{user("runtime.mstart"), user("runtime.main"), user("main.main"), user("syscall.Syscall"), user("runtime.entersyscall"), kernel})
	want := []flame.Frame{user("[runtime]"), user("main.main"), user("[runtime]"), kernel}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("folded (-want +got):\n%s", diff)
	}
}

// In a real browser the graph is drawn, searched and zoomed into, and nothing complains.
func TestInBrowser(t *testing.T) {
	b := browsertest.Start(t)
	b.Font(browsertest.WideFont)
	b.Do(chromedp.EmulateViewport(1200, 800))
	count := func(selector string) int {
		return browsertest.Ask[int](b, `document.querySelectorAll('`+selector+`').length`)
	}
	names := func() string {
		return browsertest.Ask[string](b, `[...document.querySelectorAll('#graph button')].map(b => b.textContent).join(' ')`)
	}

	one, _ := written(t, sides()[0])
	b.Open(one)
	if names := names(); strings.Contains(names, "do_idle") || !strings.Contains(names, "veth_xmit") {
		t.Errorf("the graph shows %s", names)
	}
	browsertest.Ask[bool](b, `(() => { document.getElementById('idle').click(); return true; })()`)
	if names := names(); !strings.Contains(names, "do_idle") {
		t.Errorf("with idle time the graph shows %s", names)
	}
	b.Quiet()

	two, _ := written(t, sides()...)
	b.Open(two)
	if hit := browsertest.Ask[string](b, `String(window.hit)`); hit != "undefined" {
		t.Error("a name ran as a script")
	}
	if n := browsertest.Ask[string](b, `getComputedStyle([...document.querySelectorAll('#graph button')].find(b => b.textContent === 'vxlan_xmit')).backgroundColor`); n != "rgb(255, 130, 90)" {
		t.Errorf("what only one network runs is drawn in %s", n)
	}
	b.Axis("#axis span:not(.name)", 3)
	b.Do(chromedp.EmulateViewport(1200, 800))
	if shade := browsertest.Ask[string](b, `document.getElementById('darkest').textContent`); !strings.Contains(shade, "square root") {
		t.Errorf("the scale of shades is %q", shade)
	}
	// What calls it took more time in all, but not of its own.
	if n := browsertest.Ask[string](b, `getComputedStyle([...document.querySelectorAll('#graph button')].find(b => b.textContent === '__dev_queue_xmit')).backgroundColor`); n != "rgb(240, 238, 234)" {
		t.Errorf("what differs by what it calls alone is drawn in %s", n)
	}
	if above := browsertest.Ask[bool](b, `document.querySelector('.legend').compareDocumentPosition(document.getElementById('graph')) === Node.DOCUMENT_POSITION_FOLLOWING`); !above {
		t.Error("the legend does not stand above the graph")
	}
	browsertest.Ask[bool](b, `(() => { const f = document.getElementById('find'); f.value = 'XMIT'; f.dispatchEvent(new Event('input')); return true; })()`)
	if n := count("#graph .hit"); n != 3 {
		t.Errorf("%d functions found, want 3", n)
	}
	if found := browsertest.Ask[string](b, `document.getElementById('found').textContent`); !strings.Contains(found, "69.2%") {
		t.Errorf("found %q, want 69.2%% of the time", found)
	}
	all := count("#graph button")
	browsertest.Ask[bool](b, `(() => { [...document.querySelectorAll('#graph button')].find(b => b.textContent === 'tcp_sendmsg').click(); return true; })()`)
	if zoomed := count("#graph button"); zoomed != all-1 {
		t.Errorf("%d functions are drawn under tcp_sendmsg, want all %d but tcp_recvmsg", zoomed, all)
	}
	b.Do(chromedp.KeyEvent("\x1b"))
	if n := count("#graph button"); n != all {
		t.Errorf("Escape leaves %d functions, want %d", n, all)
	}
	b.Quiet()
}

// What differs by a few ticks is not said to differ.
func TestChanceIsLeftOut(t *testing.T) {
	all := sides()
	all[1].Profile.Samples[2].Ticks, all[1].Profile.Samples[3].Ticks = 1450, 8
	if got := Summarise("flame/vxlan.html", all...); len(got.Functions) > 0 {
		t.Errorf("functions are said to differ: %+v", got.Functions)
	}
	var text strings.Builder
	if err := WriteText(&text, all...); err != nil || !strings.Contains(text.String(), noneDiffers) {
		t.Errorf("%v: the text does not say that none differs:\n%s", err, &text)
	}
	all[1].Profile.Samples[3].Ticks = 10
	if got := Summarise("flame/vxlan.html", all...); len(got.Functions) != 1 {
		t.Errorf("functions that differ: %+v, want vxlan_xmit", got.Functions)
	}
}

// A run's page has the functions that differ most, and where the graph is.
func TestSummary(t *testing.T) {
	s := Summarise("flame/vxlan.html", sides()...)
	if s.Page != "flame/vxlan.html" || len(s.Networks) != 2 || len(s.Busy) != 2 || s.Per != "transaction" || len(s.Functions) == 0 {
		t.Fatalf("the summary is %+v", s)
	}
	if f := s.Functions[0]; f.Name != "vxlan_xmit" || !f.Kernel || len(f.Times) != 2 || f.Difference == "" {
		t.Errorf("the first function is %+v", f)
	}
}
