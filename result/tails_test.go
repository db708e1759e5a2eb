package result

import (
	"math"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"
	"pgregory.net/rapid"

	"netdelta/internal/property"
)

// Tails are what the library reads of the same histogram, whatever its form, and so are errors.
func TestTails(t *testing.T) {
	var tails Tails
	property.Check(t, func(t *rapid.T) {
		most := rapid.SampledFrom([]int64{histogramMost, histogramMost, 1_000_000}).Draw(t, "most")
		digits := rapid.SampledFrom([]int{histogramDigits, histogramDigits, 1}).Draw(t, "digits")
		h := hdrhistogram.New(histogramLeast, most, digits)
		values := rapid.OneOf(rapid.Int64Range(0, 5000), rapid.Int64Range(0, most))
		for range rapid.IntRange(0, 60).Draw(t, "buckets") {
			count := rapid.OneOf(rapid.Int64Range(1, 300), rapid.Int64Range(1, math.MaxInt64/64)).Draw(t, "count")
			if err := h.RecordValues(values.Draw(t, "value"), count); err != nil {
				t.Fatal(err)
			}
		}
		text, err := EncodeHistogram(h)
		if err != nil {
			t.Fatal(err)
		}
		if rapid.Bool().Draw(t, "damaged") {
			at := rapid.IntRange(0, len(text)-1).Draw(t, "at")
			text = text[:at] + rapid.SampledFrom([]string{"", "A", "/", "="}).Draw(t, "other") + text[at+1:]
		}
		got, err := tails.Of(text)
		want, wantErr := DecodeHistogram(text)
		if (err == nil) != (wantErr == nil) || err != nil && err.Error() != wantErr.Error() {
			t.Fatalf("%v, want %v", err, wantErr)
		}
		if err == nil && got != (Tail{want.TotalCount(), want.ValueAtPercentile(99), want.ValueAtPercentile(99.9)}) {
			t.Fatalf("%+v, want %d values, %d and %d", got, want.TotalCount(), want.ValueAtPercentile(99), want.ValueAtPercentile(99.9))
		}
	})
}
