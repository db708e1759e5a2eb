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

// A network that lets nothing through for a second in the middle of a run is named, with the time; the others are not. The
// bursts that it swallowed do not make it faster.
func TestStallIsNamedWhenQuiet(t *testing.T) {
	require.Namespaces(t)
	nft := require.Tool(t, "nft")
	_, run := struck(t, 20, func(tb testbed.Testbed) <-chan error {
		pods, lifted := tb.Pods(), make(chan error, 1)
		lift, err := probetest.Deafen(t.Context(), pods[len(pods)-2], nft)
		if err != nil {
			lifted <- err
			return lifted
		}
		time.AfterFunc(time.Second, func() { lifted <- lift() })
		return lifted
	})
	for _, check := range namedOfVXLAN(t, run, insight.CheckStalls) {
		t.Log(check.Observed)
	}
}

// struck runs host, bridge and vxlan in three builds of so many rounds, and has strike do something to vxlan in the middle of the second.
// The run goes on once it is done. The channel says how that ended.
func struck(t *testing.T, rounds int, strike func(testbed.Testbed) <-chan error) (experiment.Config, result.Run) {
	t.Helper()
	s := small([]string{"host", "bridge", "vxlan"}, result.CrossNode)
	s.Design.Rounds = rounds
	c := setUpOn(t, network.Catalogue(), s, 3, nil)
	watched := &remembering{Provider: c.Driver, network: "vxlan"}
	c.Driver = watched
	var done <-chan error
	c.Progress = &watcher{
		when: func(s experiment.Status) bool { return s.Build == 2 && s.Round == 6 },
		then: func() {
			watched.mu.Lock()
			defer watched.mu.Unlock()
			done = strike(watched.beds[1])
		},
	}
	run := mustRun(t, c)
	if done == nil {
		t.Fatal("the second build had no sixth round")
	}
	if err := <-done; err != nil {
		t.Fatalf("strike vxlan: %v", err)
	}
	return c, run
}

// namedOfVXLAN are the findings of a check about vxlan in the second build. There must be some, and none about other trials.
func namedOfVXLAN(t *testing.T, run result.Run, check string) (named []result.Check) {
	t.Helper()
	for _, found := range run.Checks {
		if found.Check != check {
			continue
		}
		if !strings.HasPrefix(found.Trial, "vxlan/") || !strings.HasSuffix(found.Trial, "#1") {
			t.Errorf("%s is named by %s: %s", found.Trial, check, found.Observed)
			continue
		}
		named = append(named, found)
	}
	if len(named) == 0 {
		t.Errorf("vxlan in the second build is not named by %s", check)
	}
	return named
}
