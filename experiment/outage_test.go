package experiment_test

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"netdelta/experiment"
	"netdelta/testbed"
)

// outage is a driver of machines elsewhere that are away during some builds.
type outage struct {
	far
	builds []int // numbered from 1
	away   *atomic.Bool
}

func (o outage) Update(s experiment.Status) { o.away.Store(slices.Contains(o.builds, s.Build)) }

func (o outage) Open(ctx context.Context, spec testbed.Spec) (testbed.Testbed, error) {
	if o.away.Load() {
		return nil, errors.New("node w2 is lost")
	}
	tb, err := o.far.Open(ctx, spec)
	if err != nil {
		return nil, err
	}
	return reachable{tb, o.away}, nil
}

// reachable is a testbed whose pods, which outlive builds, start nothing while their machines are away.
type reachable struct {
	testbed.Testbed
	away *atomic.Bool
}

func (t reachable) Pods() []testbed.Pod {
	var all []testbed.Pod
	for _, p := range t.Testbed.Pods() {
		all = append(all, reachablePod{p, t.away})
	}
	return all
}

func (t reachable) Endpoint(from, to testbed.Pod, port uint16) netip.AddrPort {
	return t.Testbed.Endpoint(from.(reachablePod).Pod, to.(reachablePod).Pod, port)
}

type reachablePod struct {
	testbed.Pod
	away *atomic.Bool
}

func (p reachablePod) Start(ctx context.Context, cmd testbed.Command) (testbed.Process, error) {
	if p.away.Load() {
		return nil, errors.New("node w2 is lost")
	}
	return p.Pod.Start(ctx, cmd)
}

// Machines elsewhere that are away while three builds would have been made cost those builds and no cell. When they were never
// there, or stay away, the run ends.
func TestOutage(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		away         []int
		failed, left int // builds
		ended        string
	}{
		"for a while":    {[]int{2, 3, 4}, 3, 3, ""},
		"for good":       {[]int{2, 3, 4, 5, 6}, 4, 1, "in 4 builds in a row and was given up"},
		"from the first": {[]int{1, 2, 3, 4, 5, 6}, 2, 0, "in 2 builds in a row and was given up"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := setUpFar(t, []string{"host", "bridge"}, 6)
			o := outage{c.Driver.(far), tc.away, new(atomic.Bool)}
			c.Driver, c.Progress = o, o
			run := mustRun(t, c)
			failed, left := map[int]bool{}, map[int]bool{}
			for _, tr := range journal(t, c) {
				if tr.Failed == "" {
					left[tr.Build] = true
				} else if failed[tr.Build] = true; !strings.Contains(tr.Failed, "node w2 ") {
					t.Errorf("%s: %s", tr.ID(), tr.Failed)
				}
			}
			if len(failed) != tc.failed || len(left) != tc.left {
				t.Errorf("%d builds failed and %d are left, want %d and %d", len(failed), len(left), tc.failed, tc.left)
			}
			if notes := strings.Join(run.Notes, "\n"); !strings.Contains(notes, tc.ended) || tc.ended == "" && strings.Contains(notes, "given up") {
				t.Errorf("the notes are %q", run.Notes)
			}
		})
	}
}
