package hops_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"netdelta/experiment/tracing"
	insight "netdelta/insight/hops"
	"netdelta/internal/golden"
	probe "netdelta/probe/hops"
	"netdelta/report/browsertest"
	"netdelta/report/hops"
	"netdelta/result"
)

// way is a network as it could be traced; one with a tunnel has two hops more.
func way(name string, tunnel bool) insight.Way {
	hop := func(step probe.Step, where, from, to string, at float64) tracing.Stretch {
		return tracing.Stretch{Hop: probe.Hop{Step: step, Where: where, From: from, To: to}, Times: []float64{at - 10, at, at + 10, at, at + 200}}
	}
	untraced := []float64{14_000, 14_100, 14_200}
	if tunnel {
		untraced = []float64{15_600, 15_700, 15_800}
	}
	builds := make([]tracing.Traced, 3)
	for i := range builds {
		late := float64(10 * i)
		there := []tracing.Stretch{hop(probe.StepOut, "pod0", "pod0 program", "pod0 eth0", 1500+late), hop(probe.StepLink, "", "pod0 eth0", "node0 veth0", 600)}
		back := []tracing.Stretch{hop(probe.StepOut, "pod1", "pod1 program", "pod1 eth0", 1600)}
		if tunnel {
			there = append(there, hop(probe.StepEncapsulation, "node0", "node0 vxlan0", "node0 eth0", 700+2*late))
			back = append(back, hop(probe.StepDecapsulation, "node0", "node0 eth0", "node0 vxlan0", 900))
		}
		there = append(there, hop(probe.StepDelivery, "pod1", "pod1 eth0", "pod1 program", 5000))
		back = append(back, hop(probe.StepDelivery, "pod0", "pod0 eth0", "pod0 program", 5100))
		builds[i] = tracing.Traced{
			Build: i, Request: there, Response: back, Untraced: untraced, Traced: []float64{16_000, 16_100, 16_200},
			Cost: 150, Events: 6, Otherwise: 1,
		}
	}
	return insight.WayOf(tracing.Cell{Cell: result.Cell{Network: name, Workload: "tcp-rr"}, Builds: builds})
}

func TestText(t *testing.T) {
	for name, ways := range map[string][]insight.Way{
		"one": {way("vxlan", true)}, "two": {way("bridge", false), way("vxlan", true)},
	} {
		var out bytes.Buffer
		if err := hops.WriteText(&out, ways...); err != nil {
			t.Fatal(err)
		}
		golden.Check(t, filepath.Join("testdata", name+".txt"), out.String())
	}
}

// Hops that do not agree with what was measured without them are not shown: one sentence says which figures differ.
func TestDoubtfulHopsAreNotShown(t *testing.T) {
	bridge, vxlan := way("bridge", false), way("vxlan", true)
	slow := vxlan
	slow.Run = vxlan.Untraced / 2
	for name, ways := range map[string][]insight.Way{"sum": {way("bridge", false), slow}} {
		var text, page bytes.Buffer
		if err := errors.Join(hops.WriteText(&text, ways...), hops.Write(&page, ways...)); err != nil {
			t.Fatal(err)
		}
		for form, out := range map[string]string{"text": text.String(), "page": page.String()} {
			if strings.Contains(out, string(probe.StepEncapsulation)) || !strings.Contains(out, "not shown") || !strings.Contains(out, "vxlan") {
				t.Errorf("%s, %s: %s", name, form, out)
			}
		}
	}
	var out bytes.Buffer
	if err := hops.WriteText(&out, bridge, vxlan); err != nil || !strings.Contains(out.String(), string(probe.StepEncapsulation)) {
		t.Errorf("hops that agree: %v\n%s", err, out.String())
	}
}

// The page is drawn to scale, quietly, with nothing of what a network's name says taken for markup.
func TestInBrowser(t *testing.T) {
	const hostile = `<img src=x onerror="window.hit=1">`
	var out bytes.Buffer
	base, other := way("bridge", false), way(hostile, true)
	if err := hops.Write(&out, base, other); err != nil {
		t.Fatal(err)
	}
	// The page has no script of its own that could say when it is ready.
	page := strings.Replace(out.String(), `<html lang="en">`, `<html lang="en" data-ready="true">`, 1)
	path := filepath.Join(t.TempDir(), "hops.html")
	if err := os.WriteFile(path, []byte(page), 0o644); err != nil {
		t.Fatal(err)
	}
	b := browsertest.Start(t)
	b.Font(browsertest.WideFont)
	b.Do(chromedp.EmulateViewport(1200, 900))
	b.Open(path)
	widths := browsertest.Ask[[]float64](b, `[...document.querySelectorAll('svg.lanes > g > rect')].map((r) => r.getBoundingClientRect().width)`)
	total := browsertest.Ask[float64](b, `document.querySelector('svg.lanes').getBoundingClientRect().width`)
	var times []float64
	for _, w := range []insight.Way{base, other} {
		for _, h := range append(w.Request, w.Response...) {
			times = append(times, h.P50)
		}
	}
	if len(widths) != len(times) {
		t.Fatalf("%d hops are drawn, want %d", len(widths), len(times))
	}
	for i, w := range widths {
		if want := times[i] / other.Sum * total; w < want-2 || w > want+2 {
			t.Errorf("hop %d of %.0f ns is %.1f pixels wide, want %.1f", i, times[i], w, want)
		}
	}
	b.Axis("svg.lanes > .axis > text[text-anchor]", 3)
	if n := browsertest.Ask[int](b, `document.querySelectorAll('img').length`); n != 0 {
		t.Error("a network's name is taken for markup")
	}
	b.Quiet()
}
