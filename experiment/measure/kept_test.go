package measure

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"netdelta/testbed"
)

// closing counts how often a testbed was closed.
type closing struct {
	testbed.Testbed
	times int
}

func (c *closing) Close() error { c.times++; return nil }

// A build removes its testbeds at the same time: an interrupted run would wait for the kernel as often as there are networks.
func TestBuildReleasesAtOnce(t *testing.T) {
	var b Build
	var all sync.WaitGroup
	all.Add(3)
	for range 3 {
		b.hold(func() error {
			all.Done()
			all.Wait()
			return errors.New("it was busy")
		})
	}
	done := make(chan error, 1)
	go func() { done <- b.Close() }()
	select {
	case err := <-done:
		if err == nil || strings.Count(err.Error(), "it was busy") != 3 {
			t.Errorf("the error is %v, want that of each testbed", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("a testbed waits until another one is removed")
	}
}

// Pods serve as many builds as the decision says, and no further one where something failed in them.
func TestPodsServeSixBuilds(t *testing.T) {
	m := &Context{}
	g := Group{GroupKey: GroupKey{Network: "pod"}}
	sessions := []*Session{{}}
	tb := &closing{}
	m.kept.took(9 * time.Second)
	held := &heldTestbed{tb, 1}
	for build := 1; ; build++ {
		if next := m.PodsDue(); next != 0 && build < buildsOfPods {
			t.Errorf("the build after build %d is said to wait %s for its pods", build, next)
		}
		m.SpentOnPods()
		if err := m.release(g, held, sessions)(); err != nil {
			t.Fatal(err)
		}
		if build == buildsOfPods {
			break
		}
		if m.kept.take(GroupKey{Network: "host"}) != nil {
			t.Error("another network got the pods")
		}
		if held = m.kept.take(g.GroupKey); held == nil || tb.times != 0 {
			t.Fatalf("after build %d the pods were removed", build)
		}
	}
	if m.kept.take(g.GroupKey) != nil || tb.times != 1 || m.PodsDue() != 9*time.Second {
		t.Errorf("after %d builds the pods were closed %d times, and new ones are said to take %s", buildsOfPods, tb.times, m.PodsDue())
	}
	failed := &closing{}
	if err := m.release(g, &heldTestbed{failed, 1}, []*Session{{}, {Failed: errors.New("its pod was evicted")}})(); err != nil || failed.times != 1 {
		t.Errorf("pods in which something failed were closed %d times (%v)", failed.times, err)
	}
	waiting := &closing{}
	if err := errors.Join(m.release(g, &heldTestbed{waiting, 1}, sessions)(), m.CloseKept(), m.CloseKept()); err != nil || waiting.times != 1 {
		t.Errorf("pods that wait for a further build were closed %d times at the end (%v)", waiting.times, err)
	}
}

// What belongs to a build besides processes and connections is made anew with it.
func TestPodsOfOneBuild(t *testing.T) {
	g := Group{GroupKey: GroupKey{Network: "pod"}}
	volume := Group{GroupKey: GroupKey{Network: "pod", Underlay: Underlay{class: "fast"}}}
	if m := (&Context{}); !m.keeps(g) || m.keeps(volume) {
		t.Error("pods on others' nodes serve several builds, unless they have volumes")
	}
	if m := (&Context{Config: Config{Changes: []testbed.Change{{}}}}); m.keeps(g) {
		t.Error("the cluster is changed under the pods, and they stay")
	}
	if m := (&Context{able: testbed.Capabilities{OwnsNodes: true}}); m.keeps(g) {
		t.Error("nodes are made for the pods, and they stay")
	}
}

// The interval over builds takes them for independent, though six have their pods in common. With the scatter that was measured, of
// 0.055% between set-ups of namespaces and 0.34% between connections in them, it still covers the truth as often as it says, to
// within two percent points.
func TestCoverageWherePodsServeSixBuilds(t *testing.T) {
	const trials, pods, connections = 20_000, 0.055, 0.34
	rng := rand.New(rand.NewPCG(1, 2))
	for builds, quantile := range map[int]float64{6: 2.571, 12: 2.201, 24: 2.069, 48: 2.012} {
		covered := 0
		for range trials {
			var sum, squares, common float64
			for b := range builds {
				if b%buildsOfPods == 0 {
					common = pods * rng.NormFloat64()
				}
				x := common + connections*rng.NormFloat64()
				sum += x
				squares += x * x
			}
			n := float64(builds)
			mean := sum / n
			if math.Abs(mean) <= quantile*math.Sqrt((squares/n-mean*mean)/(n-1)) {
				covered++
			}
		}
		got := float64(covered) / trials
		t.Logf("%d builds: %.1f%%", builds, 100*got)
		if got < 0.93 || got > 0.96 {
			t.Errorf("%d builds: 95%% intervals cover %.1f%%", builds, 100*got)
		}
	}
}
