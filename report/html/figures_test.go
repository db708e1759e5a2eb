package html

import (
	"bytes"
	"math"
	"regexp"
	"testing"
	"time"

	"pgregory.net/rapid"

	"netdelta/insight"
	"netdelta/internal/property"
	"netdelta/result"
)

// nonsense is a coordinate or a figure that is no number.
var nonsense = regexp.MustCompile(`[^a-zA-Z]((NaN|[-+]?Inf)[^a-zA-Z])`)

// TestAnyFiguresDraw holds that records with figures that nothing could have measured make a page, and one without nonsense.
func TestAnyFiguresDraw(t *testing.T) {
	run, trials := small(t)
	deltas, null, bursts := run.Deltas, run.Null, make([]result.Bursts, len(trials))
	for i := range trials {
		bursts[i] = trials[i].Bursts
	}
	logarithm := rapid.OneOf(rapid.SampledFrom([]float64{0, -700, 700, 1e-15}), rapid.Float64Range(-3, 3), rapid.Float64Range(-0.01, 0.01))
	figure := rapid.OneOf(
		rapid.SampledFrom([]float64{0, 1, -1, 1e-300, 1e300, -1e300, 1 + 1e-15, 5e-324}), rapid.Float64Range(-10, 10), rapid.Float64Range(0.99, 1.01),
	)
	property.Check(t, func(t *rapid.T) {
		odd := func(d result.Delta) result.Delta {
			d.Ratio, d.RatioLow, d.RatioHigh, d.DifferenceLow, d.DifferenceHigh = 0, nil, nil, nil, nil
			d.BaselineValue, d.Value, d.Difference = figure.Draw(t, "baseline"), figure.Draw(t, "value"), figure.Draw(t, "difference")
			center, half := logarithm.Draw(t, "log ratio"), math.Abs(logarithm.Draw(t, "half width"))
			interval := rapid.Bool().Draw(t, "has an interval")
			low, high := d.Difference-half, d.Difference+half
			if rapid.Bool().Draw(t, "has a ratio") {
				ratioLow, ratioHigh := math.Exp(max(center-half, -700)), math.Exp(min(center+half, 700))
				d.Ratio = math.Exp(center)
				if interval {
					d.RatioLow, d.RatioHigh = &ratioLow, &ratioHigh
				}
			}
			if interval {
				d.DifferenceLow, d.DifferenceHigh = &low, &high
			}
			d.Verdict = rapid.SampledFrom([]string{"slower", "faster", "same", "unresolved", "odd"}).Draw(t, "verdict")
			return d
		}
		run.Deltas, run.Null = nil, nil
		for _, d := range deltas {
			run.Deltas = append(run.Deltas, odd(d))
		}
		for _, d := range null {
			run.Null = append(run.Null, odd(d))
		}
		run.Margin = rapid.SampledFrom([]float64{0, 0.02, 1}).Draw(t, "margin")
		for i := range trials {
			b := bursts[i]
			b.P50, b.Start = nil, nil
			for range b.Round {
				b.P50 = append(b.P50, figure.Draw(t, "p50"))
				b.Start = append(b.Start, rapid.Int64Range(-int64(time.Hour), int64(time.Hour)).Draw(t, "start"))
			}
			trials[i].Bursts = b
		}
		var out bytes.Buffer
		if err := Write(&out, run, insight.Summarize(result.List(trials))); err != nil {
			t.Fatal(err)
		}
		text := bytes.ReplaceAll(out.Bytes(), []byte(script), nil)
		if at := nonsense.FindIndex(text); at != nil {
			t.Fatalf("the page says %q", text[max(at[0]-200, 0):at[1]+20])
		}
	})
}
