package experiment_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"netdelta/experiment"
	"netdelta/experiment/study"
	"netdelta/insight"
	"netdelta/internal/require"
	"netdelta/network"
	"netdelta/probe/probetest"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/lab"
	"netdelta/workload"
)

// transactions is a study of a database over host's network and suspects, of a length that finds what is broken and no more.
func transactions(t *testing.T, suspects ...string) *study.Study {
	t.Helper()
	for _, program := range []string{"mariadbd", "sysbench", "nft"} {
		require.Tool(t, program)
	}
	s := small(append([]string{"host"}, suspects...), result.CrossNode)
	s.Workloads = []study.Workload{{Name: "oltp"}}
	s.Design.Rounds, s.Design.Blocks = 1, 2
	return s
}

// What befalls a database is named with the network under which it did, by what is known of it, while its transactions go on as if nothing
// was: one network silently takes another link between two nodes, one lets nothing through now and then, and one keeps the nodes apart once,
// for so long that none has a quorum.
func TestTroubledDatabase(t *testing.T) {
	require.Long(t)
	t.Parallel()
	nft := require.Tool(t, "nft")
	s := transactions(t, misrouted, stalling, parting)
	s.Design.TimeBudget = 10 * time.Minute
	c := setUpOn(t, astray(t), s, 2, nil)
	c.Driver = troubledDriver{c.Driver, map[string]befall{stalling: stall(nft), parting: part(nft)}}
	run := mustRun(t, c)
	trials := journal(t, c)
	for _, tr := range trials {
		t.Logf("%s: %q %+v", tr.ID(), tr.Bursts.Disturbed, tr.Services)
		if tr.Failed != "" {
			t.Errorf("%s failed: %s", tr.ID(), tr.Failed)
		}
	}
	t.Run("another link", func(t *testing.T) { misroutedIsNamed(t, run, trials) })
	t.Run("stalls", func(t *testing.T) {
		if !slices.ContainsFunc(run.Checks, func(c result.Check) bool {
			return c.Check == insight.CheckStalls && strings.HasPrefix(c.Trial, stalling+"/")
		}) {
			t.Errorf("no stall of %s is named: %+v, %q", stalling, run.Checks, run.Notes)
		}
	})
	t.Run("lost quorum", func(t *testing.T) { lostQuorumIsNamed(t, run, trials) })
}

// The networks of a database under which something befalls it.
const (
	misrouted = "routed"
	stalling  = "vxlan"
	parting   = "bridge"
)

// misroutedIsNamed fails unless the network that takes another link is named with the link and enters no delta, and the others are proved.
func misroutedIsNamed(t *testing.T, run result.Run, trials []result.Trial) {
	t.Helper()
	wrong := 0
	for _, tr := range trials {
		if tr.Path == nil {
			t.Errorf("%s has no proof of its path", tr.ID())
			continue
		}
		if astray := strings.HasPrefix(tr.Cell, misrouted+"/"); astray == tr.Path.OK {
			t.Errorf("%s: proved is %v: %+v", tr.ID(), tr.Path.OK, tr.Path)
		} else if astray {
			wrong++
		}
	}
	if wrong == 0 {
		t.Error("no trial went astray")
	}
	for _, d := range run.Deltas {
		if d.Network == misrouted {
			t.Errorf("there is a delta of %s: %s %.2f", d.Cell, d.Metric, d.Ratio)
		}
	}
	named := false
	for _, check := range run.Checks {
		named = named || check.Check == insight.CheckPath && !check.OK && strings.Contains(check.Observed, "eth1 carried")
	}
	if !named {
		t.Errorf("the other link is not named in %+v", run.Checks)
	}
}

// lostQuorumIsNamed fails unless the database whose nodes were kept apart is fixed, what was asked of it meanwhile counts for nothing, and
// the run goes on.
func lostQuorumIsNamed(t *testing.T, run result.Run, trials []result.Trial) {
	t.Helper()
	named := slices.ContainsFunc(run.Notes, func(n string) bool { return strings.Contains(n, "quorum") })
	goesOn := false
	for _, tr := range trials {
		for _, why := range tr.Bursts.Disturbed {
			named = named || strings.Contains(why, "quorum")
		}
		goesOn = goesOn || tr.Build == 1 && strings.HasPrefix(tr.Cell, parting+"/") && slices.Contains(tr.Bursts.Disturbed, "")
	}
	if !named {
		t.Errorf("the lost quorum is not named in %q", run.Notes)
	}
	if !goesOn {
		t.Error("the database did not go on under the network that had kept its nodes apart")
	}
}

// Databases with other tables take the same ports in the same pods: which can't be measured together is said before anything is.
func TestDatabasesOfOtherTablesAreRefused(t *testing.T) {
	t.Parallel()
	s := transactions(t, "bridge")
	s.Workloads[0].Levels = study.Levels{"rows": {25_000, 30_000}}
	s.Parameters = result.Parameters(workload.Parameters(workloads())...)
	p, err := experiment.Prepare(t.Context(), s, lab.NewDriver(network.Catalogue()), workloads())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range p.Cells {
		if other := c.Params.Own.Count("rows") == 30_000; other != strings.Contains(c.Unsupported, "both take port 3306") {
			t.Errorf("%s is unsupported: %q", c.ID, c.Unsupported)
		}
	}
}

// befall does something to pods. calm ends it.
type befall func(context.Context, []testbed.Pod) (calm func() error, err error)

// troubledDriver opens labs in which something befalls the pods each time they are swapped onto a network.
type troubledDriver struct {
	testbed.Provider
	on map[string]befall
}

func (d troubledDriver) Open(ctx context.Context, spec testbed.Spec) (testbed.Testbed, error) {
	tb, err := d.Provider.Open(ctx, spec)
	if err != nil {
		return nil, err
	}
	return &troubledBed{Testbed: tb.(*lab.Testbed), driver: d, calm: func() error { return nil }}, nil
}

// troubledBed is such a lab. calm ends what befalls it.
type troubledBed struct {
	*lab.Testbed
	driver troubledDriver
	calm   func() error
}

func (b *troubledBed) Swap(ctx context.Context, network string) error {
	err := errors.Join(b.calm(), b.Testbed.Swap(ctx, network))
	b.calm = func() error { return nil }
	strike := b.driver.on[network]
	if err != nil || strike == nil {
		return err
	}
	calm, err := strike(ctx, b.Pods())
	if err == nil {
		b.calm = calm
	}
	return err
}

func (b *troubledBed) Close() error { return errors.Join(b.calm(), b.Testbed.Close()) }

// elsewhere are the pods on other nodes than the client's, which is on the first.
func elsewhere(pods []testbed.Pod) []testbed.Pod {
	return slices.DeleteFunc(slices.Clone(pods), func(p testbed.Pod) bool { return p.Node() == pods[0].Node() })
}

// stall returns what silences the pod that clients talk to for most of each pause, until it is calmed.
func stall(nft string) befall {
	const silent, pause = 900 * time.Millisecond, 1300 * time.Millisecond
	return func(ctx context.Context, pods []testbed.Pod) (func() error, error) {
		served := elsewhere(pods)[0]
		ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
		done := make(chan error, 1)
		go func() {
			for {
				select {
				case <-ctx.Done():
					done <- nil
					return
				case <-time.After(pause):
				}
				lift, err := probetest.Deafen(context.WithoutCancel(ctx), served, nft)
				if err == nil {
					time.Sleep(silent)
					err = lift()
				}
				if err != nil {
					done <- err
					return
				}
			}
		}()
		return func() error {
			cancel()
			return <-done
		}, nil
	}
}

// part returns what keeps all pods but the client's apart, the first time: a node is out after 16 s of silence, by the servers' settings, and
// clients give up after 30 s.
func part(nft string) befall {
	const apart = 40 * time.Second
	lost := false
	return func(ctx context.Context, pods []testbed.Pod) (func() error, error) {
		if lost {
			return func() error { return nil }, nil
		}
		lost = true
		var lifts []func() error
		for _, p := range elsewhere(pods) {
			lift, err := probetest.Deafen(context.WithoutCancel(ctx), p, nft)
			if err != nil {
				return nil, err
			}
			lifts = append(lifts, lift)
		}
		done := make(chan error, 1)
		go func() {
			time.Sleep(apart)
			var failed []error
			for _, lift := range lifts {
				failed = append(failed, lift())
			}
			done <- errors.Join(failed...)
		}()
		return func() error { return <-done }, nil
	}
}
