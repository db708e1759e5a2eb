package live_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"netdelta/internal/golden"
	"netdelta/internal/leak"
	"netdelta/internal/property"
	"netdelta/report/live"
	"netdelta/report/ui"
	"netdelta/result"
)

func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }

// delta is one with an interval of so many percent on both sides, none where that is negative.
func delta(network string, percent, within float64, verdict string) result.Delta {
	d := result.Delta{
		Cell: network, Network: network, Baseline: "host", Setting: result.Setting{Workload: "tcp-rr", Params: result.Params{Message: 300}, Placement: result.CrossNode},
		Path: "pod", Metric: "p50", Unit: "ns", Better: "lower", Headline: true,
		Judgement: result.Judgement{Ratio: 1 + percent/100, Blocks: 2, Need: 3, Verdict: verdict},
	}
	if within >= 0 {
		low, high := d.Ratio-within/100, d.Ratio+within/100
		d.RatioLow, d.RatioHigh = &low, &high
	}
	return d
}

// deltas are those of a run, whose intervals are the narrower the later; one of a further setting is among them.
func deltas(wide float64) []result.Delta {
	other := delta("vxlan", 3, wide, "same")
	other.Placement = result.SameNode
	return []result.Delta{
		other, delta("vxlan", 43, 1.2*wide, "slower"), delta("bridge", 12, wide, "slower"), delta("macvlan", -1, wide, "unresolved"), delta("sockmap\x1b[31m", -40, 12*wide, "faster"),
		delta("udp-tun", 263, -1, "unresolved"),
	}
}

func TestBlock(t *testing.T) {
	s := live.Standing{}.Next(3, deltas(2)).Next(4, deltas(0.5))
	var out strings.Builder
	for _, terminal := range []ui.Terminal{{Width: 100, Unicode: true}, {Width: 80}, {Width: 40, Unicode: true}} {
		out.WriteString(strings.Join(s.Block(terminal, live.BlockMost), "\n") + "\n\n")
	}
	out.WriteString(strings.Join(s.Block(ui.Terminal{Width: 80, Unicode: true}, 4), "\n") + "\n\n" + s.Line() + "\n")
	golden.Check(t, "testdata/standing.txt", out.String())
	if none := (live.Standing{}).Block(ui.Terminal{Width: 80}, 10); none != nil || (live.Standing{}).Line() != "" {
		t.Errorf("before the first build there is %q", none)
	}
}

// A block fits the terminal, however many networks there are and whatever they are called.
func TestBlockFits(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		var all []result.Delta
		for i := range rapid.IntRange(0, 30).Draw(t, "networks") {
			within := rapid.Float64Range(-1, 1e4).Draw(t, "within")
			d := delta(fmt.Sprint(rapid.String().Draw(t, "name"), i), rapid.Float64Range(-90, 1e5).Draw(t, "change"), min(within, 9), "slower")
			all = append(all, d)
		}
		terminal := ui.Terminal{Width: rapid.IntRange(20, 200).Draw(t, "width"), Unicode: rapid.Bool().Draw(t, "unicode")}
		most := rapid.IntRange(0, 20).Draw(t, "most")
		lines := live.Standing{}.Next(1, all).Block(terminal, most)
		if len(lines) > min(most, live.BlockMost) {
			t.Errorf("%d lines, want at most %d", len(lines), most)
		}
		for _, l := range lines {
			if n := ui.Columns(l); n >= terminal.Width {
				t.Errorf("%d columns of %d: %q", n, terminal.Width, l)
			}
		}
	})
}
