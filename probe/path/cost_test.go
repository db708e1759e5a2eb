package path_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"netdelta/network"
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
			p := path.NewPlannedProver(e.o)
			var beside []time.Duration
			sampled := 0
			prove := func() {
				var inLoad time.Duration
				start := time.Now()
				proof, err := p.Prove(b.Context(), e.client.Pod, e.server.Pod, network.TCP, func(ctx context.Context) (path.Load, error) {
					began := time.Now()
					l, err := run(ctx)
					inLoad = time.Since(began)
					return l, err
				})
				beside = append(beside, time.Since(start)-inLoad)
				if err != nil || !proof.OK {
					b.Fatal(err, proof.Findings)
				}
				sampled = proof.Sampled
			}
			prove() // the path's MTU is found once
			beside = nil
			for b.Loop() {
				prove()
			}
			slices.Sort(beside)
			b.ReportMetric(float64(beside[0].Microseconds()), "us-beside-load-least")
			b.ReportMetric(float64(beside[len(beside)/2].Microseconds()), "us-beside-load-p50")
			b.ReportMetric(float64(sampled), "packets")
		})
	}
}
