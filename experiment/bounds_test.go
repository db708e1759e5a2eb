package experiment_test

import (
	"testing"
	"time"

	"netdelta/experiment/study"
	"netdelta/result"
	"netdelta/unit"
)

// What bounds real trials is found: a limited link bounds a stream, the processors bound one without a limit and round trips
// that follow one another on one processor; a few requests a second leave everything idle, and only wait. On a busy machine a
// burst may go wrong, so that it is what most trials say that counts.
func TestBoundsOfRealTrials(t *testing.T) {
	for _, c := range []struct {
		name string
		load study.Workload
		rate unit.BitsPerSecond
		want string
	}{
		{"a stream to a node whose link is slower than the others", study.Workload{Name: "tcp-stream", Levels: study.Levels{"link.nodes": {"node1:50Mbit/s"}}}, 50e9, result.BoundLink},
		{"a stream without a limit", study.Workload{Name: "tcp-stream"}, 0, result.BoundCPU},
		{"round trips on one processor", study.Workload{Name: "tcp-rr"}, 0, result.BoundCPU},
		// At this rate a round has less than 100 ms of each network: whatever else the machine runs would count in longer ones.
		{"a few requests a second", study.Workload{Name: "tcp-rr", Levels: study.Levels{"request_rate": {float64(400)}}}, 0, result.BoundLatency},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := small([]string{"bridge"}, result.CrossNode)
			s.Design.Burst, s.Design.Rounds = 60*time.Millisecond, 3
			s.Workloads = []study.Workload{c.load}
			s.Testbed.Link.Rate = c.rate
			run := setUp(t, s, 2, nil)
			mustRun(t, run)
			by := map[string]int{}
			for _, tr := range journal(t, run) {
				if tr.Bound == nil {
					t.Logf("%s: unknown, of bursts disturbed by %v", tr.ID(), tr.Bursts.Disturbed)
					continue
				}
				t.Logf("%s: %+v", tr.ID(), *tr.Bound)
				by[tr.Bound.By]++
				if hasLink := tr.Bound.Link >= 0; hasLink != (c.rate > 0) || tr.Bound.Disk >= 0 {
					t.Errorf("%s: a link of rate %v and no disk have shares %+v", tr.ID(), c.rate, *tr.Bound)
				}
			}
			others := 0
			for name, n := range by {
				if name != c.want {
					others += n
				}
			}
			if by[c.want] <= others {
				t.Errorf("bounded by %v, want %s", by, c.want)
			}
		})
	}
}
