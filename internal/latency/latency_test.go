package latency

import (
	"math"
	"slices"
	"testing"
	"unsafe"

	"github.com/HdrHistogram/hdrhistogram-go"
	"pgregory.net/rapid"

	"netdelta/internal/clock"
	"netdelta/internal/native"
	"netdelta/internal/property"
)

// newRecorder is a recorder whose ticks are nanoseconds.
func newRecorder(t testing.TB) *Recorder {
	t.Helper()
	arena, err := native.NewArena(native.Reserved(unsafe.Sizeof(Recorder{})) + Memory)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := arena.Free(); err != nil {
			t.Error(err)
		}
	})
	r := (*Recorder)(arena.Take(unsafe.Sizeof(Recorder{})))
	r.Open(arena, clock.Kernel())
	return r
}

// TestPlaces compares the indexes of values with the library's, into whose histograms they are read.
func TestPlaces(t *testing.T) {
	h := newHistogram()
	property.Check(t, func(t *rapid.T) {
		v := rapid.Int64Range(lowest, highest).Draw(t, "value")
		place := int(index(v))
		low, next := value(place), value(place+1)
		if place < 0 || place >= counters || v < low || v >= next {
			t.Fatalf("%d is at place %d, which holds %d to %d", v, place, low, next)
		}
		h.Reset()
		if err := h.RecordValue(v); err != nil {
			t.Fatal(err)
		}
		if got := h.Min(); v >= subBuckets && got != low {
			t.Fatalf("the library puts %d with %d, this with %d", v, got, low)
		}
	})
	for _, v := range []int64{-5, 0, 1, highest, highest + 1, math.MaxInt64} {
		if place := index(v); place >= counters {
			t.Errorf("%d is at place %d of %d", v, place, counters)
		}
	}
}

func TestSort(t *testing.T) {
	var s sorter
	property.Check(t, func(t *rapid.T) {
		values := rapid.SliceOf(rapid.Int64Min(0)).Draw(t, "values")
		want := slices.Sorted(slices.Values(values))
		s.sort(values)
		if !slices.Equal(values, want) {
			t.Fatalf("%v, want %v", values, want)
		}
	})
}

func TestSummaryIsExact(t *testing.T) {
	r := newRecorder(t)
	var batch Batch
	property.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Int64Range(1, 1_000_000), 1, 300).Draw(t, "values")
		r.Reset()
		sum := 0.0
		for _, v := range values {
			r.Record(v)
			sum += float64(v)
		}
		s := batch.Take(r)
		sorted := slices.Sorted(slices.Values(values))
		want := Summary{
			Count: int64(len(values)),
			Min:   float64(sorted[0]),
			P50:   slowQuantile(sorted, 0.5), P90: slowQuantile(sorted, 0.9), P99: slowQuantile(sorted, 0.99),
			Mean:  math.Floor(sum) / float64(len(values)),
			Max:   float64(sorted[len(sorted)-1]),
			Split: s.Split,
		}
		if s != want {
			t.Fatalf("%+v, want %+v", s, want)
		}
		var even, odd []int64
		for i, v := range values {
			if i%2 == 0 {
				even = append(even, v)
			} else {
				odd = append(odd, v)
			}
		}
		if len(odd) >= 2 {
			slices.Sort(even)
			slices.Sort(odd)
			if split := math.Log(slowQuantile(odd, 0.5) / slowQuantile(even, 0.5)); math.Abs(split-s.Split) > 1e-12 {
				t.Fatalf("split %v, want %v", s.Split, split)
			}
		}
		h := NewHistogram()
		h.Add(&batch)
		if h.Count() != int64(len(values)) {
			t.Fatalf("the histogram has %d of %d values", h.Count(), len(values))
		}
	})
}

// slowQuantile is the definition of R's type 7, with one interpolation written differently.
func slowQuantile(sorted []int64, q float64) float64 {
	rank := q * float64(len(sorted)-1)
	low, high := math.Floor(rank), math.Ceil(rank)
	if low == high {
		return float64(sorted[int(low)])
	}
	part := rank - low
	return float64(sorted[int(low)])*(1-part) + float64(sorted[int(high)])*part
}

func TestLongBurstsOverflowIntoHistograms(t *testing.T) {
	r := newRecorder(t)
	const n = 3*Samples + 11
	for i := range int64(n) {
		r.Record(10_000 + i%1000)
	}
	var batch Batch
	s := batch.Take(r)
	if s.Count != n || s.Min != 10_000 || math.Abs(s.P50/10_500-1) > 2e-3 || math.Abs(s.P99/10_990-1) > 2e-3 || math.Abs(s.Split) > 2e-3 {
		t.Errorf("summary of %d latencies between 10.0 and 11.0 us: %+v", n, s)
	}
	h := NewHistogram()
	h.Add(&batch)
	h.Add(&batch)
	encoded, err := h.Encode()
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := hdrhistogram.Decode([]byte(encoded))
	if err != nil {
		t.Fatal(err)
	}
	if decoded.TotalCount() != 2*n {
		t.Errorf("%d of %d latencies survive", decoded.TotalCount(), 2*n)
	}
	// A short burst after a long one must not see what is left of it.
	r.Reset()
	r.Record(5)
	if s := batch.Take(r); s.Count != 1 || s.P50 != 5 {
		t.Errorf("summary of one latency: %+v", s)
	}
	h.Reset()
	h.Add(&batch)
	if h.Count() != 1 {
		t.Errorf("%d latencies, want 1", h.Count())
	}
}

func TestEmpty(t *testing.T) {
	r := newRecorder(t)
	var batch Batch
	if s := batch.Take(r); s != (Summary{}) {
		t.Errorf("summary of nothing: %+v", s)
	}
	h := NewHistogram()
	h.Add(&batch)
	if encoded, err := h.Encode(); err != nil || encoded != "" {
		t.Errorf("histogram of nothing: %q, %v", encoded, err)
	}
}

func TestLatenciesBeyondTheRangeAreKept(t *testing.T) {
	r := newRecorder(t)
	for _, v := range []int64{0, -3, highest * 2, math.MaxInt64 / 4} {
		r.Record(v)
	}
	var batch Batch
	batch.Take(r)
	h := NewHistogram()
	h.Add(&batch)
	if h.Count() != 4 {
		t.Errorf("%d of 4 latencies are kept", h.Count())
	}
}

func TestRecordOfOthers(t *testing.T) {
	h := NewHistogram()
	for _, v := range []struct{ ns, count int64 }{{1000, 3}, {math.MaxInt64, 1}, {-1, 1}, {5000, 0}} {
		h.Record(v.ns, v.count)
	}
	if h.Count() != 5 {
		t.Errorf("%d latencies, want 5", h.Count())
	}
}
