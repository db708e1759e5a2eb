package latency

import (
	"math"
	"testing"
	"time"
	"unsafe"

	"netdelta/internal/clock"
	"netdelta/internal/native"
)

func benchRecorder(b *testing.B) (*Recorder, []int64) {
	arena, err := native.NewArena(native.Reserved(unsafe.Sizeof(Recorder{})) + Memory)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = arena.Free() })
	r := (*Recorder)(arena.Take(unsafe.Sizeof(Recorder{})))
	c := clock.System()
	r.Open(arena, c)
	values := make([]int64, 2000)
	for i := range values {
		values[i] = c.Span(time.Duration(7000 + 3000*math.Abs(math.Sin(float64(i*i))) + 1e5*math.Pow(float64(i%97)/97, 40)))
	}
	return r, values
}

func BenchmarkRecord(b *testing.B) {
	r, values := benchRecorder(b)
	for i := range b.N {
		if i%len(values) == 0 {
			r.Reset()
		}
		r.Record(values[i%len(values)])
	}
}

func BenchmarkSummarise(b *testing.B) {
	r, values := benchRecorder(b)
	for _, v := range values {
		r.Record(v)
	}
	batch, h := &Batch{}, NewHistogram()
	for i := 0; i < b.N; i += len(values) {
		batch.Take(r)
		h.Add(batch)
	}
}
