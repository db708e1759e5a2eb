package html

import (
	"strings"
	"testing"

	"netdelta/report/reporttest"
	"netdelta/result"
)

func TestBeside(t *testing.T) {
	var b strings.Builder
	run := result.Run{Study: "latency", Confidence: 0.95, ExactComparison: reporttest.ExactComparison(), Exact: reporttest.Exact()}
	if err := Write(&b, run, nil); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"Instructions and time", "rank correlation 0.50", "19.55%", "net|&lt;b&gt;", "This run counts instructions", "-12", "counted in the same guest",
		"Each seed is a guest of its own",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	b.Reset()
	if err := Write(&b, result.Run{Study: "latency", Confidence: 0.95}, nil); err != nil {
		t.Fatal(err)
	}
	for _, other := range []string{"Instructions and time", "counts instructions", "Each seed"} {
		if strings.Contains(b.String(), other) {
			t.Errorf("a page in time has %q", other)
		}
	}
}
