package terminal

import (
	"strings"
	"testing"

	"netdelta/report/reporttest"
	"netdelta/report/ui"
	"netdelta/result"
)

func TestBeside(t *testing.T) {
	for _, width := range []int{60, 80, 120} {
		var b strings.Builder
		run := result.Run{Study: "latency", Confidence: 0.95, ExactComparison: reporttest.ExactComparison(), Exact: reporttest.Exact()}
		if err := Write(&b, run, View{Terminal: ui.Terminal{Width: width, Unicode: true}, Verbose: true}); err != nil {
			t.Fatal(err)
		}
		text := strings.Join(strings.Fields(b.String()), " ")
		for _, want := range []string{
			"Instructions and time", "rank correlation 0.50", "bridge +12% 1 +19.55% 1 +3590 +3608", "vxlan +31% 2 +50.00% 3 -12 +8000",
			"This run counts instructions", "What is not counted: caches",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("%d columns: it lacks %q:\n%s", width, want, b.String())
			}
		}
		for line := range strings.Lines(b.String()) {
			if ui.Columns(strings.TrimSuffix(line, "\n")) > width {
				t.Errorf("a line is wider than %d columns: %s", width, line)
			}
		}
	}
}
