package experiment_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"netdelta/experiment"
	"netdelta/insight"
	"netdelta/internal/require"
	"netdelta/network"
	"netdelta/probe/probetest"
	"netdelta/result"
	"netdelta/testbed"
)

// remembering is a driver that remembers the testbeds of one network, in the order of builds.
type remembering struct {
	testbed.Provider
	network string

	mu   sync.Mutex
	beds []testbed.Testbed
}

func (o *remembering) Open(ctx context.Context, spec testbed.Spec) (testbed.Testbed, error) {
	tb, err := o.Provider.Open(ctx, spec)
	if err == nil && spec.Network == o.network {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.beds = append(o.beds, tb)
	}
	return tb, err
}

// silence has a pod drop everything that comes for a while.
func silence(ctx context.Context, pod testbed.Pod, nft string, span time.Duration) error {
	lift, err := probetest.Deafen(ctx, pod, nft)
	if err != nil {
		return err
	}
	time.Sleep(span)
	return lift()
}

// A network that lets nothing through for a second in the middle of a run is named, with the time; the others are not. The
// bursts that it swallowed do not make it faster.
func TestStallIsNamed(t *testing.T) {
	require.Namespaces(t)
	nft := require.Tool(t, "nft")
	s := small([]string{"host", "bridge", "vxlan"}, result.CrossNode)
	s.Design.Rounds = 40
	c := setUpOn(t, network.Catalogue(), s, 3, nil)
	watched := &remembering{Provider: c.Driver, network: "vxlan"}
	c.Driver = watched
	quiet := make(chan error, 1)
	c.Progress = &watcher{
		when: func(s experiment.Status) bool { return s.Build == 2 && s.Round == 10 },
		then: func() {
			watched.mu.Lock()
			defer watched.mu.Unlock()
			pods := watched.beds[1].Pods()
			go func() { quiet <- silence(t.Context(), pods[len(pods)-2], nft, time.Second) }()
		},
	}
	run := mustRun(t, c)
	if err := <-quiet; err != nil {
		t.Fatalf("make vxlan stall: %v", err)
	}
	named := false
	for _, check := range run.Checks {
		if check.Check != insight.CheckStalls {
			continue
		}
		if !strings.HasPrefix(check.Trial, "vxlan/") || !strings.HasSuffix(check.Trial, "#1") {
			t.Errorf("%s is said to stall: %s", check.Trial, check.Observed)
			continue
		}
		named = true
		t.Log(check.Observed)
	}
	if !named {
		t.Error("the stall of vxlan in the second build is not named")
	}
}
