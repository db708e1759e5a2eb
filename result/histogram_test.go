package result

import (
	"math"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"
	"pgregory.net/rapid"

	"netdelta/internal/property"
)

func TestHistogramsMergeToThePercentilesOfAll(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		all := NewHistogram()
		parts := rapid.SliceOfN(rapid.SliceOfN(rapid.Int64Range(1, 60_000_000_000), 1, 50), 1, 5).Draw(t, "parts")
		encoded := []string{""}
		for _, values := range parts {
			part := NewHistogram()
			for _, v := range values {
				if err := part.RecordValue(v); err != nil {
					t.Fatal(err)
				}
				if err := all.RecordValue(v); err != nil {
					t.Fatal(err)
				}
			}
			text, err := EncodeHistogram(part)
			if err != nil {
				t.Fatal(err)
			}
			encoded = append(encoded, text)
		}
		sum, err := MergeHistograms(encoded...)
		if err != nil {
			t.Fatal(err)
		}
		if !sum.Equals(all) || sum.TotalCount() != all.TotalCount() {
			t.Errorf("merged %d values, want %d, or other buckets", sum.TotalCount(), all.TotalCount())
		}
	})
}

func TestHistogramKeepsAThousandth(t *testing.T) {
	for _, v := range []int64{17, 999, 21_345, 1_234_567, 59_999_999_999} {
		h := NewHistogram()
		if err := h.RecordValue(v); err != nil {
			t.Fatal(err)
		}
		if got := h.ValueAtQuantile(50); math.Abs(float64(got)/float64(v)-1) > 0.001 {
			t.Errorf("%d was kept as %d", v, got)
		}
	}
}

func TestBadHistograms(t *testing.T) {
	for _, text := range []string{"", "x", "AAAA", "HISTFAAAAAB42pNpmSzMwMDAxAABzFCaEUoz2X+AMAA="} {
		if _, err := DecodeHistogram(text); err == nil {
			t.Errorf("DecodeHistogram(%q) succeeded", text)
		}
	}
	wide := hdrhistogram.New(1, 3_600_000_000_000, 3)
	if err := wide.RecordValue(3_000_000_000_000); err != nil {
		t.Fatal(err)
	}
	text, err := EncodeHistogram(wide)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := MergeHistograms(text); err == nil {
		t.Error("a value out of range was merged")
	}
}
