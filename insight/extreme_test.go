package insight_test

import (
	"math"
	"testing"

	"netdelta/insight"
	"netdelta/result"
)

func TestCut(t *testing.T) {
	ratios := func(list ...float64) []result.Delta {
		var deltas []result.Delta
		for _, r := range list {
			deltas = append(deltas, result.Delta{Judgement: result.Judgement{Ratio: r}, Better: "lower"})
		}
		return deltas
	}
	for name, c := range map[string]struct {
		deltas []result.Delta
		cut    float64
	}{
		"alike":            {ratios(1.1, 1.2, 1.3, 1.3, 1.3, 1.3, 1.3), math.Inf(1)},
		"one far off":      {ratios(1.1, 1.2, 1.3, 1.3, 1.3, 1.3, 9), 2 * math.Log(1.3)},
		"one far below":    {ratios(1/1.3, 1.1, 1.2, 1.3, 1.3, 1.3, 1.0/9), 2 * math.Log(1.3)},
		"too few to tell":  {ratios(1.1, 1.2, 9), math.Inf(1)},
		"none differs":     {ratios(1, 1, 1, 1, 1, 1, 1, 1), math.Inf(1)},
		"beyond all means": {append(ratios(1.1, 1.1, 1.1, 1.1, 1.1, 1.1), result.Delta{Judgement: result.Judgement{Ratio: math.Inf(1)}}), math.Inf(1)},
	} {
		if got := insight.Cut(c.deltas); math.Abs(got-c.cut) > 1e-12 && got != c.cut {
			t.Errorf("%s: cut at %v, want %v", name, got, c.cut)
		}
	}
}
