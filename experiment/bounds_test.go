package experiment_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"netdelta/experiment/study"
	"netdelta/internal/require"
	"netdelta/result"
	"netdelta/unit"
)

// What bounds real trials is found: a limited link bounds a stream, the processors bound one without a limit and round trips
// that follow one another on one processor; a few requests a second leave everything idle, and only wait. On a busy machine a
// burst may go wrong, so that it is what most trials say that counts.
func TestBoundsOfRealTrialsWhenQuiet(t *testing.T) {
	require.Quiet(t)
	const few = 400 // requests a second: a round has less than 100 ms of each network, and whatever else the machine runs would count in longer ones
	for _, c := range []struct {
		name  string
		loads []study.Workload
		rate  unit.BitsPerSecond
		want  map[string]string // by workload and its rate of requests
	}{
		{
			"to a node whose link is slower than the others", []study.Workload{{Name: "tcp-stream", Levels: study.Levels{"link.nodes": {"node1:50Mbit/s"}}}}, 50e9,
			map[string]string{"tcp-stream 0": result.BoundLink},
		},
		{
			"without a limit", []study.Workload{{Name: "tcp-stream"}, {Name: "tcp-rr"}, {Name: "tcp-rr", Levels: study.Levels{"request_rate": {float64(few)}}}}, 0,
			map[string]string{"tcp-stream 0": result.BoundCPU, "tcp-rr 0": result.BoundCPU, "tcp-rr 400": result.BoundLatency},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := small([]string{"bridge"}, result.CrossNode)
			s.Design.Burst, s.Design.Rounds = 60*time.Millisecond, 3
			s.Workloads = c.loads
			s.Testbed.Link.Rate = c.rate
			run := setUp(t, s, 2, nil)
			cells := mustRun(t, run).Cells
			by := map[string]map[string]int{}
			for _, tr := range journal(t, run) {
				if tr.Bound == nil {
					t.Logf("%s: unknown, of bursts disturbed by %v", tr.ID(), tr.Bursts.Disturbed)
					continue
				}
				t.Logf("%s: %+v", tr.ID(), *tr.Bound)
				cell := cells[slices.IndexFunc(cells, func(c result.Cell) bool { return c.ID == tr.Cell })]
				load := fmt.Sprintf("%s %g", cell.Workload, cell.Params.RequestRate)
				if by[load] == nil {
					by[load] = map[string]int{}
				}
				by[load][tr.Bound.By]++
				if hasLink := tr.Bound.Link >= 0; hasLink != (c.rate > 0) || tr.Bound.Disk >= 0 {
					t.Errorf("%s: a link of rate %v and no disk have shares %+v", tr.ID(), c.rate, *tr.Bound)
				}
			}
			for load, want := range c.want {
				all := 0
				for _, n := range by[load] {
					all += n
				}
				if 2*by[load][want] <= all {
					t.Errorf("%s is bounded by %v, want %s", load, by[load], want)
				}
			}
		})
	}
}
