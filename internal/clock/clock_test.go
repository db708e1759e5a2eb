package clock

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"netdelta/internal/property"
)

func clocks() []Clock { return []Clock{System(), Kernel()} }

func TestClockAgreesWithTheKernelWhenQuiet(t *testing.T) {
	for _, c := range clocks() {
		t.Run(c.String(), func(t *testing.T) {
			begin, before := time.Now(), c.Ticks()
			time.Sleep(50 * time.Millisecond)
			after, want := c.Ticks(), time.Since(begin)
			got := time.Duration(c.Nanoseconds(after - before))
			// The readings are apart by what a busy machine takes between them; a wrong rate is off by far more.
			if math.Abs(float64(got)/float64(want)-1) > 0.05 {
				t.Errorf("%v of ticks in %v", got, want)
			}
		})
	}
}

func TestTicksDoNotGoBack(t *testing.T) {
	for _, c := range clocks() {
		last := c.Ticks()
		for range 1_000_000 {
			now := c.Ticks()
			if now < last {
				t.Fatalf("%v: %d after %d", &c, now, last)
			}
			last = now
		}
	}
}

func TestSpanAndBack(t *testing.T) {
	for _, c := range clocks() {
		property.Check(t, func(t *rapid.T) {
			d := time.Duration(rapid.Int64Range(0, int64(100*time.Hour)).Draw(t, "d"))
			if back := time.Duration(c.Nanoseconds(c.Span(d))); (back - d).Abs() > 2+d/1e9 {
				t.Fatalf("%v: %v becomes %v", &c, d, back)
			}
		})
		if c.Nanoseconds(-5) != 0 || c.Span(-time.Second) != 0 {
			t.Errorf("%v: negative spans are not 0", &c)
		}
	}
}

func BenchmarkTicks(b *testing.B) {
	for _, c := range clocks() {
		b.Run(c.String(), func(b *testing.B) {
			for b.Loop() {
				c.Ticks()
			}
		})
	}
}
