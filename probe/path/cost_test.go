package path_test

import (
	"context"
	"testing"
	"time"

	"netdelta/probe/path"
	"netdelta/testbed"
)

// BenchmarkProve tells what a proof takes beside the load itself: some forty round trips of a small message, about a
// millisecond of work, and a short stream.
func BenchmarkProve(b *testing.B) {
	for name, l := range map[string]struct {
		protocol    string
		size, count int
	}{"small": {"udp", 64, 40}, "stream": {"tcp", 1_000_000, 1}} {
		b.Run(name, func(b *testing.B) {
			e := newEnds(b, open(b, named(b, "vxlan"), testbed.Spec{}), 0, 2)
			run := e.trip(b, l.protocol, l.size, l.count)
			p := path.NewProber(e.o)
			var inLoad time.Duration
			sampled := 0
			prove := func() {
				proof, err := p.Prove(b.Context(), e.client.Pod, e.server.Pod, func(ctx context.Context) (path.Load, error) {
					began := time.Now()
					l, err := run(ctx)
					inLoad += time.Since(began)
					return l, err
				})
				if err != nil || !proof.OK {
					b.Fatal(err, proof.Findings)
				}
				sampled = proof.Sampled
			}
			prove() // the path's MTU is found once
			inLoad = 0
			began, n := time.Now(), 0
			for b.Loop() {
				prove()
				n++
			}
			b.ReportMetric(float64((time.Since(began)-inLoad).Microseconds())/float64(n), "us-beside-load/op")
			b.ReportMetric(float64(inLoad.Microseconds())/float64(n), "us-load/op")
			b.ReportMetric(float64(sampled), "packets")
		})
	}
}
