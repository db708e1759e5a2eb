package markdown

import (
	"strings"
	"testing"

	"netdelta/report/reporttest"
	"netdelta/result"
)

func TestBeside(t *testing.T) {
	var b strings.Builder
	if err := Write(&b, result.Run{Study: "latency", Confidence: 0.95, ExactComparison: reporttest.ExactComparison()}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"<summary>Instructions and time</summary>", "rank correlation (Spearman) is 0.50", "Rank correlation 0.50; p50, both against host.",
		"| bridge | +12% | 1 | +19.55% | 1 | +3590 | +3608 |", `| vxlan | +31% | 2 | +50.00% | 3 | -12 | +8000 |`,
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("it lacks %q:\n%s", want, b.String())
		}
	}
	if strings.Contains(b.String(), "| net|") {
		t.Error("a name has ended its cell")
	}
}

// An exact run says what it counts before its figures.
func TestExact(t *testing.T) {
	var b strings.Builder
	if err := Write(&b, result.Run{Study: "latency", Question: "What?", Exact: reporttest.Exact()}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"counts instructions", "caches", "in parallel", "seeds"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("it does not speak of %q:\n%s", want, b.String())
		}
	}
}
